"""Small apps, each runnable with ``perdure serve examples.<name>:app``."""
