"""The conversation of an agent: the tree of its messages and the path that is shown.

Imports ``models``, ``chat``, ``storage``, ``protocol`` and ``errors`` only.
"""
