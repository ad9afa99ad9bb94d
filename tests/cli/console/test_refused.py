"""The list of an adversary: whatever he tries is refused, logged, and changes nothing."""

from __future__ import annotations

import base64
import json
import socket
from urllib.parse import urlsplit

import pytest

from shmbroker.cli.console.actions import ACTIONS
from shmbroker.cli.console.users import OF_USERS
from tests.cli.console.conftest import VIEWER, Site
from tests.cli.console.visitor import PATIENCE_SECONDS, Visitor, refused

READS = [
    "/api/state", "/api/tree", "/api/queues", "/api/queue?name=orders",
    "/api/browse?queue=orders", "/api/message?queue=orders&position=0", "/api/participants",
    "/api/ha", "/api/cluster", "/api/links", "/api/errors", "/api/log",
    "/api/doctor", "/api/exchanges", "/api/patterns", "/api/users", "/api/events",
]  # fmt: skip
VERBS = [*ACTIONS, *OF_USERS]
NASTY = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


def test_without_a_session_nothing_is_told(site: Site) -> None:
    for stranger in (
        Visitor(site.url),
        Visitor(site.url, cookie="shmbroker-console-0=x"),
        Visitor(site.url, cookie=f"shmbroker-console-{urlsplit(site.url).port}=stale"),
    ):
        for path in READS:
            refused(stranger.get(path), 401, "session")
        for verb in VERBS:
            refused(stranger.post(f"/api/do/{verb}", {"queue": "orders"}), 401, "session")
        refused(stranger.post("/api/logout", {}), 401, "session")


def test_a_viewer_does_nothing(site: Site) -> None:
    viewer = site.visitor("viewer")
    for verb in VERBS:
        refused(viewer.post(f"/api/do/{verb}", {"queue": "orders", "body": "x"}), 403, "role")
    refused(viewer.get("/api/users"), 403, "role")
    assert site.shell.bodies("orders") == []
    last = site.lines("console refused")
    assert any(each["why"] == "role" and each["user"] for each in last)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_another_site_cannot_make_a_browser_do_it(site: Site, headers: dict[str, str]) -> None:
    admin = site.visitor()
    answer = admin.post("/api/do/publish", {"queue": "orders", "body": "x"}, headers)
    refused(answer, 403, "cross-site")
    refused(Visitor(site.url).post("/api/login", {"link": site.link()}, headers), 403, "cross-site")
    assert site.shell.bodies("orders") == []


def test_a_proxy_may_end_tls(site: Site) -> None:
    visitor = Visitor(site.url)
    visitor.headers["Origin"] = f"https://{visitor.host}"
    assert visitor.log_in(link=site.link()).status == 200


def test_a_form_of_another_site_is_no_request(site: Site) -> None:
    admin = site.visitor()
    body = json.dumps({"queue": "orders", "body": "x"}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": kind, "X-CSRF-Token": admin.csrf}
        refused(admin.ask("POST", "/api/do/publish", body, headers), 415, "content")
    for token in ("", "x", site.visitor().csrf):
        headers = {"Content-Type": "application/json", "X-CSRF-Token": token}
        refused(admin.ask("POST", "/api/do/publish", body, headers), 403, "csrf")
    assert site.shell.bodies("orders") == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_name_of_the_host_is_refused(site: Site, host: str) -> None:
    visitor = site.visitor()
    visitor.headers["Host"] = host
    for path in ("/", "/static/console.js", "/api/session", "/api/queues", "/metrics"):
        refused(visitor.get(path), 421, "host")


def raw(site: Site, request: bytes) -> bytes:
    place = urlsplit(site.url)
    with socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS) as connection:
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def test_headers_are_not_injected(site: Site) -> None:
    host = urlsplit(site.url).netloc
    for head in (
        f"GET /hawtio%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: {host}\r\n",
        f"GET /?a=%0d%0aX-Injected:1 HTTP/1.1\r\nHost: {host}\r\n",
        f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n",
        "GET / HTTP/1.1\r\n",
        f"GET / HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Host: evil.example\r\n",
        f"GET http://evil.example/hawtio HTTP/1.1\r\nHost: {host}\r\n",
    ):
        answer = raw(site, f"{head}Connection: close\r\n\r\n".encode())
        headers = answer.partition(b"\r\n\r\n")[0].lower()
        assert b"x-injected" not in headers
        assert b"set-cookie" not in headers
        assert b"evil.example" not in answer.lower()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/%2e%2e/main.py",
        "/static/....//server.py", "/static//etc/passwd", "/static/%00index.html",
        "/static/..\\server.py", "/static/uPlot.LICENSE%00.js", "/../../etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages(site: Site, path: str) -> None:
    answer = raw(
        site, f"GET {path} HTTP/1.1\r\nHost: {urlsplit(site.url).netloc}\r\n"
        "Connection: close\r\n\r\n".encode()
    )  # fmt: skip
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), answer[:200]
    assert b"import" not in answer
    assert b"root:" not in answer


def test_what_is_too_large_or_no_request_is_refused(site: Site) -> None:
    admin = site.visitor()
    sent = {"Content-Type": "application/json", "X-CSRF-Token": admin.csrf}
    for body in (b"", b"[]", b"nonsense", b"\xff", b'{"a":' * 100_000, b'{"a": "\\ud800"}'):
        refused(admin.ask("POST", "/api/do/purge", body, sent), 400, "request")
    refused(admin.ask("POST", "/api/do/publish", b" " * (3 << 20), sent), 413, "too-large")
    refused(Visitor(site.url).ask("POST", "/api/login", b" " * 40_000, sent), 413, "too-large")
    assert admin.ask("POST", "/api/login", b"{}", {**sent, "Content-Length": "-1"}).status == 400
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert admin.ask(method, "/api/queues", b"{}", sent).status in (400, 405, 403)


def test_half_a_character_is_no_user_and_no_password(site: Site) -> None:
    for given in ({"user": "\ud800", "password": "x"}, {"user": "x", "password": "\ud800"}):
        refused(Visitor(site.url).post("/api/login", given), 400, "request")


def test_a_stranger_is_not_told_where_the_folder_is(site: Site) -> None:
    answer = Visitor(site.url).post("/api/login", {"link": "x" * 40})
    refused(answer, 401, "link")
    assert str(site.folder) not in answer.json["why"]


def test_who_never_sends_a_whole_request_is_cut_off(site: Site) -> None:
    place = urlsplit(site.url)
    whole = f"GET /hawtio HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
    held = []
    for sent in (b"", b"GET / HTTP/1.1\r\nHo", whole + b"GET / HT"):
        made = socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS)
        made.sendall(sent)
        held.append(made)
    for each in held:
        with each:
            while each.recv(65536):
                pass  # the answer to the whole one


def test_what_names_and_bodies_say_stays_text(site: Site) -> None:
    """As JSON that no browser takes for a page; what the pages do with it: test_pages.py."""
    admin = site.visitor()
    with_nasty = '"><img src=x onerror=alert(1)>'
    site.shell.does("queue", "declare", with_nasty)
    admin.does("publish", queue=with_nasty, body=NASTY, key=NASTY, properties={NASTY: NASTY})
    for path, parameters in [
        ("/api/queues", {}), ("/api/tree", {}), ("/api/queue", {"name": with_nasty}),
        ("/api/browse", {"queue": with_nasty}), ("/api/queue", {"name": NASTY}),
    ]:  # fmt: skip
        answer = admin.get(path, **parameters)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        answer.json  # noqa: B018  # it is JSON
    site.shell.does("queue", "delete", with_nasty, "--yes", "--force")


def test_every_answer_keeps_strangers_out(site: Site) -> None:
    for path in ("/", "/hawtio", "/static/nothing", "/api/queues", "/api/session", "/nowhere"):
        answer = Visitor(site.url).get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Access-Control-Allow-Origin"] is None
        assert answer.headers["Server"] is None


def test_the_pages_name_no_other_host(site: Site) -> None:
    page = Visitor(site.url).get("/").body.decode()
    assert "<script" in page
    assert "//" not in page.replace("<!doctype", "")
    assert Visitor(site.url).get("/hawtio").headers["Location"] == "/"


def test_metrics_are_for_those_who_may_log_in(site: Site) -> None:
    answer = Visitor(site.url).get("/metrics")
    refused(answer, 401, "session")
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    wrong = Visitor(site.url, headers={"Authorization": "Basic nonsense"})
    refused(wrong.get("/metrics"), 401, "session")
    known = base64.b64encode(f"guest:{VIEWER}".encode()).decode()
    basic = Visitor(site.url, headers={"Authorization": f"Basic {known}"})
    for visitor in (basic, site.visitor("viewer")):
        answer = visitor.get("/metrics")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert b'shmbroker_queue_depth{queue="orders"' in answer.body
