"""Who gets into a console: by password, by a link that is good once, and who does not."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import signal
import socket
import ssl
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme
from starlette.requests import Request

from shmbroker.cli.console import server, session
from shmbroker.cli.console.application import Application
from shmbroker.cli.console.attempts import (
    ADDRESS_PAUSE_MAX,
    FREE,
    USER_PAUSE_MAX,
    Attempts,
    source_of,
)
from shmbroker.cli.console.login import Login
from shmbroker.cli.console.refusal import LINES_MAX, Refusals, Refused
from shmbroker.cli.console.session import AGE_SECONDS, IDLE_SECONDS, SESSIONS_MAX, Sessions
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.security.credential import Credentials
from tests.cli.command import eventually
from tests.cli.console.conftest import ADMIN, VIEWER, Site, with_credentials
from tests.cli.console.visitor import Visitor, refused
from tests.support.certificate import written


def test_the_roles_of_those_who_log_in(site: Site) -> None:
    for user, password, role in (("operator", ADMIN, "admin"), ("guest", VIEWER, "viewer")):
        visitor = Visitor(site.url)
        answer = visitor.log_in(user=user, password=password)
        assert answer.json["role"] == role
        told = visitor.reads("/api/session")
        assert (told["user"], told["role"], told["passwords"]) == (user, role, True)
        assert visitor.reads("/api/state")["state"] == "live"
    assert {each["user"] for each in site.lines("console login")} >= {"operator", "guest"}


def test_the_cookie_is_for_this_console_and_for_no_script(site: Site) -> None:
    visitor = Visitor(site.url)
    cookie = visitor.log_in(link=site.link()).headers["Set-Cookie"]
    port = site.url.rstrip("/").rpartition(":")[2]
    assert cookie.startswith(f"shmbroker-console-{port}=")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


def test_a_link_is_good_once_and_for_its_role(site: Site) -> None:
    token = site.link("viewer")
    first, second = Visitor(site.url), Visitor(site.url)
    assert first.log_in(link=token).json["role"] == "viewer"
    refused(second.log_in(link=token), 401, "link")
    refused(second.log_in(link="../../shmbroker.toml-and-more"), 401, "link")
    refused(second.get("/api/state"), 401, "session")


def test_a_session_that_ends_is_over(site: Site) -> None:
    visitor = site.visitor()
    assert visitor.reads("/api/queues")
    assert visitor.post("/api/logout", {}).status == 200
    refused(visitor.get("/api/queues"), 401, "session")


def test_a_viewer_ends_a_session_too(site: Site) -> None:
    assert site.visitor("viewer").post("/api/logout", {}).status == 200


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_sessions_end_by_themselves() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    token, made = sessions.begin("operator", "admin")
    assert sessions.of("another") is None
    while clock.now < AGE_SECONDS - IDLE_SECONDS:
        clock.now += IDLE_SECONDS
        assert sessions.of(token) is made
    clock.now = AGE_SECONDS + 1
    assert sessions.of(token) is None
    token, _ = sessions.begin("operator", "admin")
    clock.now += IDLE_SECONDS / 2
    assert sessions.of(token, looks=True) is not None  # a page that only listens does not count
    clock.now += IDLE_SECONDS / 2 + 1
    assert sessions.of(token) is None


def test_a_password_that_is_changed_while_it_is_checked_begins_no_session(tmp_path: Path) -> None:
    sessions, ends = Sessions(Clock()), ["operator"]
    application = Application.__new__(Application)

    class Checks:
        def by_password(self, *_given: str) -> str:
            sessions.end_of(ends)
            return "admin"

    async def received() -> dict[str, object]:
        body = json.dumps({"user": "operator", "password": ADMIN}).encode()
        return {"type": "http.request", "body": body}

    def log_in() -> None:
        request = Request({"type": "http", "client": None, "headers": []}, received)
        asyncio.run(application._log_in(request))

    vars(application).update(_sessions=sessions, _login=Checks(), _port=1, _is_secure=False)
    application._log = Log(tmp_path / "log", "one")
    with pytest.raises(Refused):
        log_in()
    assert not sessions._all
    ends[:] = ["guest"]
    log_in()
    assert len(sessions._all) == 1


def test_sessions_have_a_limit() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    first, _ = sessions.begin("operator", "admin")
    for _ in range(SESSIONS_MAX):
        clock.now += 0.001
        last, _ = sessions.begin("operator", "admin")
    assert sessions.of(first) is None
    assert sessions.of(last) is not None
    assert len(sessions._all) <= session.SESSIONS_MAX


def test_guessing_is_slowed() -> None:
    attempts, now, tried = Attempts(), 0.0, 0
    while now < 600:
        pause = attempts.pause("10.0.0.1", "operator", now)
        if pause:
            now += pause
            continue
        attempts.failed("10.0.0.1", "operator", now)
        tried += 1
    assert tried < 20
    attempts.failed("10.0.0.1", "operator", now)
    assert attempts.pause("10.0.0.1", "somebody else", now) <= ADDRESS_PAUSE_MAX
    assert 0 < attempts.pause("10.0.0.2", "operator", now) <= USER_PAUSE_MAX
    assert attempts.pause("10.0.0.2", "somebody else", now) == 0
    attempts.succeeded("10.0.0.1", "operator")
    assert attempts.pause("10.0.0.1", "operator", now) == 0


def test_a_hundred_thousand_failures_take_no_more_memory() -> None:
    attempts = Attempts()
    for number in range(100_000):
        attempts.failed(f"10.0.{number >> 8}.{number & 255}", f"user {number}", number / 1000)
    assert len(attempts._of) <= 1024


def test_one_mistake_costs_nothing() -> None:
    attempts = Attempts()
    for _ in range(FREE - 1):
        attempts.failed("10.0.0.1", "operator", 1.0)
    assert attempts.pause("10.0.0.1", "operator", 1.0) == 0


def test_a_network_of_one_host_is_one_source() -> None:
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:2") != source_of("2001:db8:1::1")
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1") != source_of("10.0.0.2")
    assert source_of("fe80::1%eth0") == source_of("fe80::2")
    assert source_of("") == ""


def test_a_source_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    """While its password is looked at, its others are refused, and do not stand in the way."""
    login = Login(tmp_path, (), Credentials([]), Clock())
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def looks(user: str, password: str) -> None:
        begun.release()
        goes_on.wait()

    login._role = looks  # type: ignore[method-assign]  # it waits until it is told
    words = list[str]()

    def tries(address: str) -> None:
        try:
            login.by_password(address, "operator", "guess")
        except Refused as refused:
            words.append(refused.word)

    first, other = (threading.Thread(target=tries, args=(f"10.0.0.{n}",)) for n in (1, 2))
    first.start()
    begun.acquire()
    for _ in range(100):
        tries("10.0.0.1")
    other.start()
    goes_on.set()
    for each in (first, other):
        each.join()
    assert Counter(words) == {"too-many": 100, "credentials": 2}


@pytest.mark.parametrize("minutes", [1, 3])
def test_the_log_of_refusals_grows_slowly(minutes: int) -> None:
    clock, lines = Clock(), list[dict[str, object]]()
    refusals = Refusals(lambda event, **fields: lines.append(fields), clock)
    for _ in range(minutes):
        for _ in range(10_000):
            refusals.tell("credentials", user="x" * 10_000)
        clock.now += 60
    refusals.close()
    assert len(lines) == minutes * (LINES_MAX + 1)
    assert lines[LINES_MAX] == {"why": "credentials", "more": 10_000 - LINES_MAX}
    assert all(len(str(each.get("user", ""))) <= 200 for each in lines)


def test_requests_that_are_none_get_few_lines(own_site: Site) -> None:
    own_site.start()
    place = urlsplit(own_site.url)
    for _ in range(5 * LINES_MAX):
        with socket.create_connection((place.hostname, place.port), 60) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            while connection.recv(65536):
                pass
    told = own_site.lines("console warning")
    assert 0 < len(told) <= 2 * LINES_MAX  # of two minutes at most
    assert own_site.visitor().reads("/api/state")["state"] == "live"


def test_failed_logins_are_refused_slowed_and_logged(own_site: Site) -> None:
    own_site.start()
    known, visitor = own_site.visitor(), Visitor(own_site.url)
    for _ in range(FREE):
        refused(visitor.log_in(user="operator", password="guess"), 401, "credentials")
    guesses, answer = FREE, visitor.log_in(user="operator", password="guess")
    while answer.status == 401:  # it came after the pause: the next one is twice as long
        guesses += 1
        answer = visitor.log_in(user="operator", password="guess")
    refused(answer, 429, "too-many")
    assert int(answer.headers["Retry-After"]) >= 1
    told = own_site.lines("console refused")
    assert [each["why"] for each in told] == ["credentials"] * guesses + ["too-many"]
    assert told[0]["address"] == "127.0.0.1"
    basic = {"Authorization": f"Basic {base64.b64encode(b'operator:guess').decode()}"}
    answers = Counter[int]()
    for _ in range(100):
        answers[visitor.log_in(user="operator", password="guess").status] += 1
        answers[visitor.log_in(link="guess" * 8).status] += 1
        answers[visitor.ask("GET", "/metrics", headers=basic).status] += 1
    assert answers.keys() <= {401, 429}
    assert answers[401] < 10, "after each of these the next has to wait for longer"
    told = [each["why"] for each in own_site.lines("console refused")]
    assert told.count("too-many") <= 2 * LINES_MAX < 100  # of two minutes at most
    assert known.reads("/api/state")["state"] == "live"
    assert "guess" not in (own_site.folder / "log" / "shmbroker.log").read_text()


def test_a_changed_password_holds_from_a_reload_on(own_site: Site) -> None:
    with_credentials(own_site.folder)
    own_site.start()
    guest, operator = Visitor(own_site.url), Visitor(own_site.url)
    assert guest.log_in(user="guest", password=VIEWER).status == 200
    assert operator.log_in(user="operator", password=ADMIN).status == 200
    (own_site.folder / "viewer").write_text("another one altogether")
    own_site.shell.does("config", "reload", str(own_site.folder))
    eventually(lambda: guest.get("/api/state").status == 401)
    assert operator.get("/api/state").status == 200, "its own has not changed"
    refused(Visitor(own_site.url).log_in(user="guest", password=VIEWER), 401, "credentials")
    assert guest.log_in(user="guest", password="another one altogether").status == 200


class Turn:
    """A lock that tells who comes for it."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.asked.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_of_two_reloads_at_once_the_later_one_counts(
    own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, turn, found = own_site.folder, Turn(), []
    with_credentials(folder)
    application: Any = SimpleNamespace(knows=lambda _known, names: found.append(names))
    reads = partial(server._read_again, folder, {}, application, Log(folder / "l", "one"), turn)
    later = threading.Thread(target=reads)

    def stretched(
        network: Network, names: tuple[str, ...]
    ) -> tuple[Credentials, tuple[str, ...]]:
        """The first time so slowly that there is another reload meanwhile."""
        if later.ident is None:
            assert turn.asked.acquire(blocking=False)
            file = folder / "shmbroker.toml"
            file.write_text(file.read_text().replace('["operator", "guest"]', '["operator"]'))
            later.start()
            turn.asked.acquire()
        return credentials(network, names)

    monkeypatch.setattr(server, "credentials", stretched)
    reads()
    later.join()
    assert found == [("operator", "guest"), ("operator",)]


def test_users_who_change_while_the_broker_is_dead(own_site: Site) -> None:
    with_credentials(own_site.folder)
    own_site.start()
    guest, operator = Visitor(own_site.url), Visitor(own_site.url)
    assert guest.log_in(user="guest", password=VIEWER).status == 200
    assert operator.log_in(user="operator", password=ADMIN).status == 200
    own_site.signal(signal.SIGKILL)
    own_site.shell.does("user", "password", str(own_site.folder), "guest", stdin=b"a second one\n")
    eventually(lambda: guest.get("/api/state").status == 401)
    refused(Visitor(own_site.url).log_in(user="guest", password=VIEWER), 401, "credentials")
    assert guest.log_in(user="guest", password="a second one").status == 200
    operator.does("remove-user", name="guest")
    eventually(lambda: guest.get("/api/state").status == 401)
    assert operator.get("/api/state").status == 200


def test_over_tls(own_site: Site) -> None:
    authority, file = trustme.CA(), own_site.folder / "shmbroker.toml"
    written(authority, own_site.folder)
    with_pair = '[console]\ntls-cert = "certificate"\ntls-key = "key"\n'
    file.write_text(file.read_text().replace("[console]\n", with_pair))
    own_site.start()
    assert own_site.url.startswith("https://127.0.0.1:")
    trust = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        Visitor(own_site.url, trust=trust).get("/")
    authority.configure_trust(trust)
    visitor = Visitor(own_site.url, trust=trust)
    answer = visitor.log_in(link=own_site.link())
    assert "secure" in answer.headers["Set-Cookie"].lower()
    assert answer.headers["Strict-Transport-Security"]
    assert visitor.reads("/api/state")["queues"] == 0
    with pytest.raises((http.client.HTTPException, OSError)):
        Visitor(own_site.url.replace("https:", "http:")).get("/")
