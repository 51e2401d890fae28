"""Who may come in from where: Host headers against DNS rebinding, origins against foreign pages (architecture §10).

Pure; knows no connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

__all__ = ["Gate"]

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class Gate:
    """Decides from the headers of a request alone."""

    def __init__(self, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        """A gate that lets in this machine's own names, and what is listed.

        Args:
            hosts: Host names without port by which the server is reached; ``"*"`` lets every name in.
            origins: Origins of foreign pages that may connect, like ``"https://chat.example"``; ``"*"`` lets all in.
        """
        self._hosts = {*LOCAL_HOSTS, *(host.lower() for host in hosts)}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Why a request with these headers is refused; ``None`` when it may come in."""
        found = {name: value.decode("latin-1") for name, value in headers if name in {b"host", b"origin"}}
        host = found.get(b"host", "")
        if "*" not in self._hosts and _hostname(f"//{host}") not in self._hosts:
            return (
                f"The host name {host!r:.100} is not one of this server's. "
                "Add it with --allow-host, or App(allowed_hosts=[…])."
            )
        origin = found.get(b"origin")
        if origin is None or self._is_own(origin, host) or {"*", origin.lower()} & self._origins:
            return None
        return (
            f"Pages from {origin!r:.100} may not connect to this server. "
            "Add the origin with --allow-origin, or App(allowed_origins=[…])."
        )

    def _is_own(self, origin: str, host: str) -> bool:
        # The page's origin and the address it talks to are the same server. The scheme may differ behind a proxy.
        try:
            return urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
