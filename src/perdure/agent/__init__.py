"""The thinking: the class that users subclass, turns, the loop of steps.

Imports ``session``, ``tools`` and what lies below. What it needs from its host (ordered sending, tasks, time) it
declares in ``services``; it never imports ``host`` or ``server``.
"""
