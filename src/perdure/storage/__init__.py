"""What is kept: the contract of a store, the schema with its numbered migrations, and SQLite.

SQL lives here and nowhere else. Imports ``protocol`` and ``errors`` only.
"""
