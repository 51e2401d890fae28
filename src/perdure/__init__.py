"""A server for chat agents whose work outlives the request."""

__version__ = "0.1.0.dev0"
