"""The socket that a server listens on."""

from __future__ import annotations

import errno
import socket

from perdure.errors import ConfigurationError

__all__ = ["address_of", "listen"]


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on ``host`` and ``port``; port 0 picks a free one.

    Raises:
        ConfigurationError: the address cannot be had; the text says why and what helps.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigurationError(_reason(host, port, error)) from error
    return listener


def _reason(host: str, port: int, error: OSError | OverflowError) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EADDRINUSE:
        return f"Port {port} is in use. Stop what uses it, or take another with --port (0 picks a free one)."
    if code == errno.EACCES:
        return f"Port {port} needs rights that this user lacks. Take one above 1023 with --port."
    if code == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"{host} is no address of this machine. Use --host 0.0.0.0 to listen on all of them."
    return f"Cannot listen on {host} port {port}: {error}"


def address_of(listener: socket.socket) -> str:
    """The URL of the server behind ``listener``."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
