"""Log records that say which agent and which turn they are of, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from perdure.observability.scope import current_scope

__all__ = ["LogFormat", "WorkFilter", "log_handler"]

LogFormat = Literal["text", "json"]

_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "color_message", "agent", "turn", "work"}


class WorkFilter(logging.Filter):
    """Notes on each record whose work wrote it: ``record.agent`` and ``record.turn``, ``None`` where there is none.

    Put it on a handler to have them in a format of your own.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        scope = current_scope.get()
        for name, value in (("agent", scope and scope.key), ("turn", scope and scope.turn)):
            if getattr(record, name, None) is None:
                setattr(record, name, value)
        return True


def log_handler(format: LogFormat = "text", stream: TextIO | None = None) -> logging.Handler:
    """A handler that writes to ``stream`` (default: standard error), one record a line in JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(WorkFilter())
    handler.setFormatter(_JsonFormatter() if format == "json" else _TextFormatter())
    return handler


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s%(work)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        said = [f"{name}={value}" for name in ("agent", "turn") if (value := getattr(record, name, None)) is not None]
        record.work = f" [{' '.join(said)}]" if said else ""
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("agent", "turn"):
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD and name not in line}
        # Whatever somebody put on a record must not cost the line; escapes keep terminals and parsers safe.
        return json.dumps(line, default=str)
