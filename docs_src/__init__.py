"""The snippets of the documentation."""
