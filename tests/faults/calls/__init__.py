"""Calls that wait, and whatever may happen meanwhile, in any order, at a real server: none is lost, none runs twice.

``python -m tests.faults.calls --minutes 10`` looks for new faults; ``test_calls.py`` runs a short, repeatable part.
"""
