"""A quick client for OpenAI-compatible servers: the OpenAI SDK with our own reading of a streamed answer.

Everything here but ``sse`` needs the ``openai`` extra; import it inside functions. Imports nothing of perdure.
"""
