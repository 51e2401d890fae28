"""The version, in a module of its own so that everything may read it."""

__all__ = ["__version__"]

__version__ = "0.1.0.dev0"
