"""Believe X-Forwarded-* from the proxies that the operator trusts, and from nobody else."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

_DEFAULT_PORTS = {"http": "80", "https": "443"}

Headers = Sequence[tuple[bytes, bytes]]


class Proxies:
    """Put the client's own address, scheme and host where the proxy's are.

    Of a list the last item counts, which is what the trusted proxy itself wrote; the client is the last
    address of X-Forwarded-For that isn't a trusted proxy's. What can't be understood is left out.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[IPv4Network | IPv6Network]) -> None:
        """Wrap `app`."""
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on."""
        if scope["type"] in ("http", "websocket") and scope["client"] and self._is_trusted(scope["client"][0]):
            scope = self._seen_by_proxy(scope)
        await self._app(scope, receive, send)

    def _seen_by_proxy(self, scope: Scope) -> Scope:
        headers: Headers = scope["headers"]
        scheme = _last(headers, b"x-forwarded-proto")
        if scheme in _DEFAULT_PORTS and scope["type"] == "http":
            scope = {**scope, "scheme": scheme}
        host = _host(headers, scope["scheme"])
        if host:
            kept = [(name, value) for name, value in headers if name != b"host"]
            scope = {**scope, "headers": [*kept, (b"host", host.encode("latin-1"))]}
        client = self._client(headers)
        return {**scope, "client": (client, 0)} if client else scope

    def _client(self, headers: Headers) -> str | None:
        hops = [hop for hop in _list(headers, b"x-forwarded-for") if _is_address(hop)]
        return next((hop for hop in reversed(hops) if not self._is_trusted(hop)), hops[0] if hops else None)

    def _is_trusted(self, text: str) -> bool:
        return _is_address(text) and any(ip_address(text) in network for network in self._trusted)


def _host(headers: Headers, scheme: str) -> str | None:
    """Return the host that the client used, with its port unless that is the scheme's own."""
    host = _last(headers, b"x-forwarded-host") or _last(headers, b"host")
    port = _last(headers, b"x-forwarded-port")
    has_port = bool(host) and host.rpartition(":")[2].isdigit() and not host.endswith("]")
    is_named = port.isdigit() and port != _DEFAULT_PORTS.get(scheme)
    return f"{host}:{port}" if host and is_named and not has_port else host


def _last(headers: Headers, name: bytes) -> str:
    return next(reversed(_list(headers, name)), "")


def _list(headers: Headers, name: bytes) -> list[str]:
    texts = [value.decode("latin-1") for key, value in headers if key == name]
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
