"""The web application: its paths, and what answers each of them.

/                the pages           /hawtio     leads there
/static/NAME     their files         /metrics    what Prometheus reads
/api/...         JSON: reading for viewers, /api/do/... for admins
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from shmbroker.cli.console import browse, panels, queue, tree
from shmbroker.cli.console.actions import ACTIONS
from shmbroker.cli.console.events import Streams
from shmbroker.cli.console.guard import METRICS, Guard, content_of, cookie_of
from shmbroker.cli.console.login import Login
from shmbroker.cli.console.memory import taking_part
from shmbroker.cli.console.pages import INDEX, files
from shmbroker.cli.console.reader import Reader
from shmbroker.cli.console.refusal import Refusals, Refused
from shmbroker.cli.console.session import Session, Sessions
from shmbroker.cli.console.standing import Mode, Standing
from shmbroker.cli.console.supervised import reloaded
from shmbroker.cli.console.users import OF_USERS
from shmbroker.cli.metrics.exposition import CONTENT_TYPE, text
from shmbroker.cli.output import json_of
from shmbroker.ipc.base.errors import (
    Error,
    InvalidArgument,
    NotFound,
    SystemRefused,
    shortened,
)
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.audit import is_refused_at_once
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.clustered.shown import FILE as CLUSTER_FILE
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.config.console import Console
from shmbroker.netbridge.config.users import Users
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.serving.programs import PROGRAMS

NAMES: Final = ("queue", "to", "exchange", "pattern", "id", "name")
"""Of what is done; they are in the log."""
Endpoint = Callable[[Request], Awaitable[Response] | Response]


class Application:
    def __init__(
        self, config: Config, network: Network, console: Console, known: Credentials, port: int,
        log: Log,
    ) -> None:  # fmt: skip
        self._config, self._network = config, network
        self._port, self._is_secure = port, console.is_secure
        self._log = log
        self.refusals = Refusals(log.write, time.monotonic)
        self._sessions = Sessions(time.monotonic)
        self._login = Login(config.folder, console.credentials, known, time.monotonic)
        self._has_credentials = bool(console.credentials)
        self._reader = Reader(config, dict(console.others))
        self._streams = Streams(self._reader)
        self._ha = panels.Told(config, "ha", "pair" if config.policy == "pair" else "ha")
        self._cluster = panels.Told(config, "cluster", CLUSTER_FILE)
        self._programs = panels.Told(config, PROGRAMS, PROGRAMS)
        self._users = Users(config.folder, reloaded)
        self._examined = panels.Examined(config)
        self._files = files()
        self._version = version("shmbroker")
        app = Starlette(
            routes=self._routes(),
            exception_handlers={
                Refused: self._refused, Error: self._failed, OSError: self._failed,
                HTTPException: self._not_there,
            },
        )  # fmt: skip
        self.guard = Guard(app, console, port, self._sessions, self._login, self.refusals)

    def knows(self, known: Credentials, names: tuple[str, ...]) -> None:
        """Who may log in from now on; from any thread."""
        self._has_credentials = bool(names)
        self._sessions.end_of(self._login.knows(known, names))

    def _routes(self) -> list[BaseRoute]:
        reads: dict[str, Endpoint] = {
            "/": self._index, "/hawtio": self._elsewhere, "/static/{name}": self._file,
            "/api/session": self._session, "/api/state": self._state, "/api/tree": self._tree,
            "/api/queues": self._queues, "/api/queue": self._queue, "/api/browse": self._browse,
            "/api/message": self._message, "/api/participants": self._participants,
            "/api/ha": self._ha_panel, "/api/cluster": self._cluster_panel,
            "/api/links": self._links, "/api/errors": self._errors, "/api/log": self._log_lines,
            "/api/exchanges": self._exchanges, "/api/doctor": self._doctor,
            "/api/patterns": self._patterns, "/api/users": self._users_panel,
            "/api/events": self._events, METRICS: self._metrics,
        }  # fmt: skip
        return [
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in reads.items()),
            Route("/api/login", self._log_in, methods=["POST"]),
            Route("/api/logout", self._log_out, methods=["POST"]),
            Route("/api/do/{verb}", self._do, methods=["POST"]),
        ]

    # --- what goes wrong ----------------------------------------------------------------------

    def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        self.guard.tell(request.scope, error)
        return JSONResponse(error.content, error.status, error.headers)

    def _failed(self, request: Request, error: Exception) -> Response:
        if isinstance(error, OSError):
            error = SystemRefused(told(error))
        status = 404 if isinstance(error, NotFound) else 409
        status = 400 if isinstance(error, InvalidArgument) else status
        return JSONResponse({"error": type(error).__name__, "why": str(error)}, status)

    def _not_there(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._refused(request, Refused(status, "not-there", "there is nothing at this path"))

    # --- pages --------------------------------------------------------------------------------

    def _index(self, request: Request) -> Response:
        content, kind = self._files[INDEX]
        return Response(content, media_type=kind)

    def _elsewhere(self, request: Request) -> Response:
        return RedirectResponse("/", 308)

    def _file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "no-cache"})

    # --- sessions -----------------------------------------------------------------------------

    def _session(self, request: Request) -> Response:
        session: Session | None = request.state.session
        told: dict[str, Any] = {"name": self._config.name, "passwords": self._has_credentials}
        if session is not None:
            told |= {"user": session.user, "role": session.role, "csrf": session.csrf}
        return JSONResponse(told)

    async def _log_in(self, request: Request) -> Response:
        given = await content_of(request)
        link, user, password = (given.get(each, "") for each in ("link", "user", "password"))
        if not all(isinstance(each, str) for each in (link, user, password)):
            raise Refused(400, "request", "user, password and link are text")
        address = "" if request.client is None else request.client.host
        endings = None
        if link:
            user, role = await run_in_threadpool(self._login.by_link, address, link)
        else:
            endings = self._sessions.endings(user)
            role = await run_in_threadpool(self._login.by_password, address, user, password)
        if (former := request.cookies.get(cookie_of(self._port))) is not None:
            self._sessions.end(former)
        token, session = self._sessions.begin(user, role, endings)
        self._log.write("console login", user=user, role=role, address=address)
        answer = JSONResponse({"user": user, "role": role, "csrf": session.csrf})
        answer.set_cookie(
            cookie_of(self._port), token, httponly=True, samesite="strict",
            secure=self._is_secure, path="/",
        )  # fmt: skip
        return answer

    def _log_out(self, request: Request) -> Response:
        self._sessions.end(request.cookies[cookie_of(self._port)])
        answer = JSONResponse({})
        answer.delete_cookie(cookie_of(self._port), path="/")
        return answer

    # --- reading ------------------------------------------------------------------------------

    def _standing(self) -> Standing:
        return self._reader.standing_now()

    def _shown(self) -> None:
        """Refused if this broker has no queues: it is not live."""
        found = self._standing()
        if not found.shows_queues:
            where = f"its live is at {found.live}" if found.live else "its live is not known"
            raise Refused(403, "passive", f"{found.name} is {found.state}: {where}",
                          live=found.live, console=found.console)  # fmt: skip

    def _metrics(self, request: Request) -> Response:
        return Response(text(self._config.folder), media_type=CONTENT_TYPE)

    def _state(self, request: Request) -> Response:
        self._reader.fresh()
        return JSONResponse(self._reader.state())

    def _tree(self, request: Request) -> Response:
        self._reader.fresh()
        found, parts = self._standing(), []
        if found.shows_queues:
            with self._reader.memory.opened() as broker:
                parts.append(tree.addresses(broker, self._reader.names()))
        parts.append(tree.cluster(self._network))
        return JSONResponse(tree.root(found, request.url.hostname or found.name, parts))

    def _queues(self, request: Request) -> Response:
        self._shown()
        self._reader.fresh()
        return JSONResponse(self._reader.rows())

    def _queue(self, request: Request) -> Response:
        self._shown()
        name = _asked(request, "name")
        with self._reader.memory.opened() as broker:
            return _json(queue.fields(broker, name, self._reader.critical(name)))

    def _browse(self, request: Request) -> Response:
        self._shown()
        name, selector = _asked(request, "queue"), request.query_params.get("selector", "")
        after, count = _number(request, "after", -1), _number(request, "count", browse.PAGE)
        with self._reader.memory.opened() as broker:
            return _json(browse.page(broker, name, selector, after, count))

    def _message(self, request: Request) -> Response:
        self._shown()
        name, position = _asked(request, "queue"), _number(request, "position", -1)
        with self._reader.memory.opened() as broker:
            return _json(browse.whole(broker, name, position))

    def _participants(self, request: Request) -> Response:
        self._shown()
        programs = self._programs.read().get(PROGRAMS, [])
        with self._reader.memory.opened() as broker:
            return _json(queue.everybody(broker, programs, self._standing().process))

    def _users_panel(self, request: Request) -> Response:
        """Who may log in, and as what, is for those who decide it."""
        session: Session = request.state.session
        if not session.is_admin:
            raise Refused(403, "role", f"{session.user} is viewer: this is for an admin")
        return _json([each.fields for each in self._users.listed()])

    def _ha_panel(self, request: Request) -> Response:
        found = self._standing()
        resources = panels.of_process(found.process) | panels.of_store(self._config)
        if found.shows_queues:
            with suppress(Error, OSError), self._reader.memory.opened() as broker:
                resources |= panels.of_arena(broker)
        told = self._ha.read()
        listens = panels.acceptors(self._network)
        return _json({**found.fields, "version": self._version, "listens": listens,
                      "told": told, "resources": resources})  # fmt: skip

    def _cluster_panel(self, request: Request) -> Response:
        told = self._cluster.read() if self._network.cluster is not None else {}
        return _json({"told": told, "configured": tree.cluster(self._network)})

    def _links(self, request: Request) -> Response:
        is_shown = self._standing().shows_queues
        return _json(panels.links(self._config.vhost) if is_shown else [])

    def _errors(self, request: Request) -> Response:
        self._shown()
        with self._reader.memory.opened() as broker:
            return _json(panels.errors(broker))

    def _exchanges(self, request: Request) -> Response:
        self._shown()
        with self._reader.memory.opened() as broker:
            return _json(panels.exchanges(broker))

    def _patterns(self, request: Request) -> Response:
        self._shown()
        with self._reader.memory.opened() as broker:
            return _json(
                [{"pattern": each.pattern, "settings": each.settings} for each in broker.patterns()]
            )

    def _doctor(self, request: Request) -> Response:
        self._shown()
        with self._reader.memory.opened() as broker:
            return _json(self._examined.read(broker))

    def _log_lines(self, request: Request) -> Response:
        return _json(panels.log(self._config))

    async def _events(self, request: Request) -> Response:
        token = request.cookies[cookie_of(self._port)]
        wanted = request.query_params.get("queue")
        stream = self._streams.open(
            wanted, "queues" in request.query_params,
            lambda: self._sessions.of(token, looks=True) is not None,
        )  # fmt: skip
        return StreamingResponse(stream, media_type="text/event-stream")

    # --- doing --------------------------------------------------------------------------------

    async def _do(self, request: Request) -> Response:
        verb, session = request.path_params["verb"], request.state.session
        if verb not in ACTIONS and verb not in OF_USERS:
            raise HTTPException(404)
        given = await content_of(request)

        names = {key: str(given[key])[:200] for key in NAMES if key in given}

        def audit(**more: str) -> None:
            self._log.write("audit", verb=f"console {verb}", user=session.user, **names, **more)

        def done() -> dict[str, Any]:
            """In the thread, which goes on if nobody waits for the answer any more."""
            try:
                answer = self._done(verb, session.user, given)
            except Exception as error:
                if not _is_refused_at_once(error):
                    audit(why=shortened(told(error)))
                raise
            audit()
            return answer

        return _json(await run_in_threadpool(done))

    def _done(self, verb: str, user: str, given: dict[str, Any]) -> dict[str, Any]:
        if verb in OF_USERS:
            return OF_USERS[verb](self._users, user, given)
        self._shown()
        if self._standing().mode is not Mode.LIVE:
            raise Refused(409, "dead", f"{self._config.name} does not run: start it first")
        with taking_part(self._config.vhost, user) as broker:
            return ACTIONS[verb](broker, given)


def _is_refused_at_once(error: Exception) -> bool:
    return error.status < 500 if isinstance(error, Refused) else is_refused_at_once(error)


def _json(content: object) -> Response:
    """Bytes, and what else JSON has not, are shown as Python writes them."""
    return Response(json_of(content, default=repr), media_type="application/json")


def _asked(request: Request, name: str) -> str:
    found = request.query_params.get(name, "")
    if not found:
        raise Refused(400, "request", f"{name} is missing")
    return found


def _number(request: Request, name: str, default: int) -> int:
    found = request.query_params.get(name)
    if found is None:
        return default
    try:
        number = int(found[:20])
    except ValueError:
        raise Refused(400, "request", f"{name} is a number") from None
    return max(-1, min(number, 1 << 62))
