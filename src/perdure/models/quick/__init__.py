"""Chat completions without the slow parts: pydantic-ai says what to post, we post it and read the answer ourselves.

Everything here but ``sse``, ``wire``, ``tokens`` and ``calls`` needs the ``openai`` extra; import it inside functions.
"""
