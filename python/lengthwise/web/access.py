"""Who may see the page: a token in the address, then a cookie. Requests that another site could make are refused."""
from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lengthwise.connection import is_loopback_host

# No inline script or style, nothing of another host, and nothing sent anywhere else.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def known_hosts(host: str) -> set[str]:
    """The names in Host headers of requests that mean this server; without ports, lower case."""
    if is_loopback_host(host):
        return {host, "localhost", "127.0.0.1", "::1"}
    # Of this machine's names, which one a colleague uses is not known.
    name = socket.gethostname()
    return {one.lower() for one in (host, name, socket.getfqdn(), *_addresses(name))}


def _addresses(name: str) -> Iterable[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(name, None)]
    except OSError:
        return []


def _host_of(authority: str) -> str:
    """ "localhost" of "localhost:7080"; empty if it is malformed."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:/?#@\[\]]+))(?::\d+)?", authority)
    return (match[1] or match[2]).lower() if match else ""


class Access:
    """Passes on only GET requests of browsers that know the token."""

    def __init__(self, app: ASGIApp, token: str, hosts: set[str], port: int, secure: bool) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        # A browser sends a host's cookies to all of its ports.
        self._cookie = f"lengthwise_{port}"
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a WebSocket: closed before it is accepted
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is not passed on."""
        headers = Headers(scope=scope)
        # Another site's name may have been pointed to this address (DNS rebinding).
        if _host_of(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("Open the address that `lengthwise web` printed; this page has no other name.\n", 421)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers["host"]:
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This page is read-only.\n", 405)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and self._matches(given):
            # Out of the address, so that it is neither copied nor kept in the history.
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse(scope["path"].replace("//", "/") + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax", secure=self._secure)
            return answer
        cookies = cookie_parser(headers.get("cookie", ""))
        if given is None and self._matches(cookies.get(self._cookie, "")):
            return None
        return PlainTextResponse("Open the address with the token that `lengthwise web` printed.\n", 401)

    def _matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())
