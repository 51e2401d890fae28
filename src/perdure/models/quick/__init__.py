"""OpenAI's APIs without the slow parts: pydantic-ai says what to post, we post it and read the answer ourselves.

For chat completions that is all; of the Responses API, the body is posted as it is and the commonest events are read.
Everything here but ``sse``, ``wire``, ``tokens``, ``runs`` and ``calls`` needs the ``openai`` extra; import it inside
functions.
"""
