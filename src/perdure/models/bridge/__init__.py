"""Between our conversations and pydantic-ai's: messages one way, events the other, errors.

Importing a module of this package imports ``pydantic_ai``; do so inside functions.
"""
