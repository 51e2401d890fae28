"""Logs as JSON under any server, as docs/how-to/observe.md shows it."""

import logging

from perdure.observability.logs import log_handler

logging.basicConfig(level="INFO", handlers=[log_handler("json")])
