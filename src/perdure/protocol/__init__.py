"""What may travel: frames, UI messages and their parts, chunks, names in URLs, JSON.

Plain data and pure functions. No I/O, no clock, nothing of perdure imported but its errors.
"""
