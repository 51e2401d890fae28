"""Frames of all kinds, in any order, from several tabs, at a real server: no error, no request without its end.

``python -m tests.faults.fuzz --minutes 10`` looks for new faults; ``test_fuzz.py`` runs a short, repeatable part of it.
"""
