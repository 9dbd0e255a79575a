"""Who may ask, and from where: before any answer is made.

The address that `longwatch web` prints carries a token, which becomes a cookie that no script can read and no other site
can send. A request for another host's name (DNS rebinding), or a button that another origin presses, is refused.
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ASKED = "x-longwatch"
"""A header that another origin cannot send without asking first, and nobody here allows it."""
_STRANGER = (
    "This page belongs to somebody. Open the address that `longwatch web` printed: it holds the key.\n"
)


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """What opens."""

    token: str
    hosts: frozenset[str]
    """Names that the page may be asked for, with the port."""
    cookie: str
    """Its name; cookies are shared between ports, so the port is in it."""


def door(token: str, host: str, port: int) -> Door:
    """Return the door of a page at a host and port."""
    names = {host, "127.0.0.1", "localhost", "[::1]"}
    hosts = frozenset(f"{name}:{port}" for name in names)
    return Door(token=token, hosts=hosts, cookie=f"longwatch-{port}")


def knows(door: Door, headers: Mapping[str, str]) -> bool:
    """Pure: return whether a request carries the key, as a cookie or, for programs, as a bearer token."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and _same(bearer.strip(), door.token):
        return True
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(door.cookie)
    except CookieError:
        return False
    return cookie is not None and _same(cookie.value, door.token)


def comes_from_here(door: Door, headers: Mapping[str, str]) -> bool:
    """Pure: return whether a request that changes something was made by our own page, or by a program with the key."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    ours = origin is None or origin.partition("://")[2] in door.hosts
    return ours and site in {"same-origin", "none"} and ASKED in headers


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


class Guard:
    """Lets through what the door allows, and puts the protective headers on every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Request(scope))
        if refusal is None:
            await self._app(scope, receive, _with_headers(send))
        else:
            await refusal(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        headers, door = request.headers, self._door
        if headers.get("host", "") not in door.hosts:
            return PlainTextResponse("There is no such host here.\n", 421)
        token = request.query_params.get("token")
        if token is not None and request.url.path == "/" and _same(token, door.token):
            entered = RedirectResponse("/", 303)
            entered.set_cookie(door.cookie, door.token, httponly=True, samesite="lax")
            return entered
        if not knows(door, headers):
            return PlainTextResponse(_STRANGER, 401)
        if request.method not in {"GET", "HEAD"} and not comes_from_here(door, headers):
            return PlainTextResponse("Only the page itself may ask for this.\n", 403)
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))  # type: ignore[call-overload]
            there = {name.lower() for name, _ in given}
            more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*given, *(pair for pair in more if pair[0] not in there)]
        await send(message)

    return sending  # type: ignore[return-value]
