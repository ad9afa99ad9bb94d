"""What every request passes first: its host, its origin, its size, and its session.

Whatever is refused gets a line in the log; every answer gets the headers that keep a browser from
running or framing anything that is not ours.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from base64 import b64decode
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shmbroker.cli.console.login import Login
from shmbroker.cli.console.refusal import Refusals, Refused
from shmbroker.cli.console.session import Session, Sessions
from shmbroker.netbridge.config.console import Console, is_loopback

BODY_MAX: Final = 2 << 20
LOGIN_MAX: Final = 32 << 10
"""Bytes of a request of somebody who is not logged in yet: many may send them at once."""
BODY_SECONDS: Final = 30.0
CSRF_HEADER: Final = "x-csrf-token"
READS: Final = {"GET", "HEAD"}
LOGIN: Final = "/api/login"
WITHOUT_SESSION: Final = {LOGIN, "/api/session"}
LOOKS: Final = "looks"
API: Final = "/api/"
METRICS: Final = "/metrics"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def hosts_of(console: Console, port: int) -> frozenset[str]:
    """What a request may call this host; addresses are looked at in `is_host`."""
    names = {console.host.lower(), *(each.lower() for each in console.names)}
    if is_loopback(console.host):
        names |= {"localhost", "127.0.0.1", "::1"}
    else:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    found = {f"[{each}]" if ":" in each else each for each in names}
    plain = 443 if console.is_secure else 80
    return frozenset(f"{each}:{port}" for each in found) | (
        frozenset(found) if port == plain else frozenset()
    )


def is_host(given: str, known: frozenset[str], port: int, *, is_anywhere: bool) -> bool:
    """By a name that is not ours, another site could have a browser ask us as if it were we."""
    if given.lower() in known:
        return True
    name, _, number = given.rpartition(":")
    if not is_anywhere or number != str(port):
        return False
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    def __init__(
        self, app: ASGIApp, console: Console, port: int, sessions: Sessions, login: Login,
        refusals: Refusals,
    ) -> None:  # fmt: skip
        self._app = app
        self._sessions, self._login, self._refusals = sessions, login, refusals
        self._port = port
        self._hosts = hosts_of(console, port)
        self._is_anywhere = console.host in ("0.0.0.0", "::", "*")
        # a proxy may end TLS for a console on loopback
        self._schemes = ("https",) if console.is_secure else ("http", "https")
        self._is_open_for_metrics = console.is_open_for_metrics
        self._is_secure = console.is_secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        with_headers = self._with_headers(send)
        try:
            await self._admit(Request(scope, receive))
        except Refused as refused:
            self.tell(scope, refused)
            answer = JSONResponse(refused.content, refused.status, refused.headers)
            await answer(scope, receive, with_headers)
            return
        await self._app(scope, _limited(receive), with_headers)

    def tell(self, scope: MutableMapping[str, Any], refused: Refused) -> None:
        session = scope.get("state", {}).get("session")
        client = scope.get("client") or ("",)
        self._refusals.tell(
            refused.word, status=refused.status, address=client[0], method=scope["method"],
            path=scope["path"], user=session.user if session is not None else "",
        )  # fmt: skip

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if self._is_secure:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        return sent

    # --- what is looked at --------------------------------------------------------------------

    async def _admit(self, request: Request) -> None:
        headers, path = request.headers, request.scope["path"]
        self._check_host(headers)
        state = request.scope.setdefault("state", {})
        state["session"] = self._session(request)
        if request.method not in READS:
            self._check_origin(headers)
            self._check_content(headers, LOGIN_MAX if path == LOGIN else BODY_MAX)
        if path == LOGIN:
            self._login.check("" if request.client is None else request.client.host)
        if path.startswith(API) and path not in WITHOUT_SESSION:
            self._check_session(request, state["session"])
        if path == METRICS and not self._is_open_for_metrics and state["session"] is None:
            await self._check_scrape(request)

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        if len(given) != 1 or not is_host(
            given[0], self._hosts, self._port, is_anywhere=self._is_anywhere
        ):
            raise Refused(
                421, "host", "this console is not known by that name: see console.names in "
                "docs/configuration.md"
            )  # fmt: skip

    def _session(self, request: Request) -> Session | None:
        token = request.cookies.get(cookie_of(self._port))
        # what a page asks by itself, for who may have left, is no use of the session
        looks = request.scope["path"] == "/api/session" or LOOKS in request.query_params
        return None if token is None else self._sessions.of(token, looks=looks)

    def _check_origin(self, headers: Headers) -> None:
        own = {f"{each}://{headers['host']}".lower() for each in self._schemes}
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if (origin is not None and origin.lower() not in own) or site != "same-origin":
            raise Refused(403, "cross-site", "another site has made this request")

    def _check_content(self, headers: Headers, most: int) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(415, "content", "a request that changes something is application/json")
        length = headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 10 or int(length) > most:
            raise Refused(413, "too-large", f"a request has its length, up to {most} bytes")

    def _check_session(self, request: Request, session: Session | None) -> None:
        if session is None:
            raise Refused(401, "session", "log in first")
        if request.method in READS:
            return
        if not session.has_sent(request.headers.get(CSRF_HEADER, "")):
            raise Refused(403, "csrf", f"the token of this session is to be in {CSRF_HEADER}")
        if not session.is_admin and request.scope["path"] != "/api/logout":
            raise Refused(403, "role", f"{session.user} is viewer: this is for an admin")

    async def _check_scrape(self, request: Request) -> None:
        from starlette.concurrency import run_in_threadpool

        user, password = basic(request.headers.get("authorization", ""))
        client = "" if request.client is None else request.client.host
        await run_in_threadpool(self._login.by_password_again, client, user, password)


def basic(given: str) -> tuple[str, str]:
    """User and password of the header Authorization."""
    scheme, _, encoded = given.partition(" ")
    refused = Refused(401, "session", "log in first, or send user and password (Basic)")
    refused.headers["WWW-Authenticate"] = 'Basic realm="shmbroker"'
    if scheme.lower() != "basic":
        raise refused
    try:
        user, colon, password = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise refused from None
    if not colon:
        raise refused
    return user, password


def cookie_of(port: int) -> str:
    """Cookies are of a host: consoles on two of its ports would take each other's."""
    return f"shmbroker-console-{port}"


def _limited(receive: Receive) -> Receive:
    """Whoever sends more than it has said is cut off."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY_MAX:
            return {"type": "http.disconnect"}
        return message

    return received


async def content_of(request: Request) -> dict[str, Any]:
    """The object of JSON that a request has; Refused."""
    try:
        body = await asyncio.wait_for(request.body(), BODY_SECONDS)
    except TimeoutError:
        raise Refused(408, "too-slow", f"a request is sent within {BODY_SECONDS:g} s") from None
    try:
        found = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode()  # escapes may name halves of characters
    except (ValueError, RecursionError):
        raise Refused(400, "request", "the request is no JSON of whole characters") from None
    if not isinstance(found, dict):
        raise Refused(400, "request", "the request is no object of JSON")
    return found
