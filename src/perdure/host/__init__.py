"""Keeps agents alive: wakes them, gives them their events in order, sends what they say once it is durable.

Imports ``agent`` and what lies below; never ``server``.
"""
