"""Lists of members that stand in a file or at a URL: `update-uris-url`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

import shmbroker
from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.listed import LIST_BYTES_MAX, Listed, read_members
from shmbroker.netbridge.plan.uri import Single
from shmbroker.perf.machine.port import free_port
from tests.support.serving import Site

PATIENCE = 60.0


@contextmanager
def web_server(content: bytes, code: int = 200) -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/members"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connects(served: Site, where: str, more: str = "") -> None:
    """The list that it is given has nobody who lives."""
    uri = (
        f"failover:(tcp://127.0.0.1:{free_port()})?update-uris-url={quote(where, safe='')}"
        f"&startup-max-reconnect-attempts=-1&initial-reconnect-delay=10ms"
        f"&prefer-shared-memory=false{more}"
    )
    with shmbroker.connect(uri, user="site", password="correct horse battery") as broker:
        orders = broker.declare_queue("orders")
        orders.publish(b"x", timeout=PATIENCE)


@pytest.mark.parametrize("more", ["", "&update-uris-supported=false"])
def test_members_are_read_from_a_file(served: Site, tmp_path: Path, more: str) -> None:
    place = tmp_path / "members"
    place.write_text(f"# ours\ntcp://127.0.0.1:{free_port()},\n127.0.0.1:{served.port}  # new\n")
    connects(served, str(place), more)


def test_members_are_read_from_a_web_server(served: Site) -> None:
    with web_server(f"tcp://127.0.0.1:{served.port}".encode()) as where:
        connects(served, where)


def test_a_list_has_what_failover_has(tmp_path: Path) -> None:
    place = tmp_path / "members"
    place.write_text("a:1,failover:(b,c)?randomize=false\nd,\n")
    first, inner, last = read_members(place.as_uri())
    assert (str(first), str(inner)) == ("tcp://a:1", "failover:(tcp://b:61616,tcp://c:61616)"
                                        "?randomize=false")  # fmt: skip
    assert last == Single("d")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "uri"),
        (b"# nobody\n", "uri"),
        (b"tcp://a b", "uri, character"),
        (b"\xff", "utf-8"),
        (b"a," * LIST_BYTES_MAX, "at most"),
    ],
)
def test_what_is_no_list(tmp_path: Path, content: bytes, why: str) -> None:
    place = tmp_path / "members"
    place.write_bytes(content)
    with pytest.raises(Error, match=why):
        read_members(str(place))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    for where in (str(tmp_path), str(tmp_path / "nothing"), "http://127.0.0.1:1/", "http://a b/"):
        with pytest.raises(Error, match=re.escape(where)):
            read_members(where)
    with web_server(b"gone", 404) as where, pytest.raises(Error, match="404"):
        read_members(where)


def test_a_reason_is_told_once(tmp_path: Path) -> None:
    place = tmp_path / "members"
    told: list[str] = []
    read = threading.Semaphore(0)

    def call(step: object) -> None:
        assert callable(step)
        step()
        read.release()

    listed = Listed(call, lambda members: told.append(str(len(members))), told.append)

    def read_again() -> None:
        listed.read(str(place))
        assert read.acquire(timeout=PATIENCE)

    read_again()
    read_again()
    place.write_text("a,b")
    read_again()
    place.unlink()
    read_again()
    missing, two, again = told
    assert "No such file" in missing
    assert two == "2"
    assert again == missing
