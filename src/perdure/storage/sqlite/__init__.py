"""The embedded store: one SQLite file for all agents, one writer thread, group commit.

One module per table group holds the SQL. Imports the storage contract, ``errors``, and nothing else of perdure.
"""

from perdure.storage.sqlite.store import SqliteStore as SqliteStore
from perdure.storage.sqlite.writer import Statistics as Statistics

__all__ = ["SqliteStore", "Statistics"]
