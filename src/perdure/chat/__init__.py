"""What may happen: state machines of a conversation, without I/O, clock or tasks.

Each takes an event and says what follows; the caller does it. Imports ``protocol`` and ``errors`` only.
"""
