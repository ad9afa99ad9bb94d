"""python -m shmbroker.perf.micro.console: what a console of many queues costs.

    publisher ──► 5,000 queues ◄── console ◄── a browser: first page, then events, once a second
        │                              ◄── Prometheus: /metrics
        └──► one queue ──► consumer: pairs of rates, with a browser that listens and without one

Then the broker is stopped (SIGSTOP), and killed: the same pages are read each time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from shmbroker import Broker, vhost
from shmbroker.perf.machine.usage import processor_s
from shmbroker.perf.micro.instance import Broken, Instance

MESSAGES: Final = 10
PATIENCE_S: Final = 300.0
BUSY: Final = "busy"
FIRST: Final = (
    "/", "/static/uPlot.css", "/static/console.css", "/static/uPlot.js", "/static/console.js",
    "/static/act.js", "/static/api.js", "/static/dom.js", "/static/queue.js", "/static/charts.js",
    "/static/units.js", "/static/users.js", "/static/views.js", "/api/session",
    "/api/tree", "/api/state",
)  # fmt: skip
"""What a browser asks for before it listens to events."""
READ: Final = (
    "/api/state", "/api/tree", "/api/queues", f"/api/queue?name={BUSY}",
    f"/api/browse?queue={BUSY}", "/api/participants", "/api/ha", "/api/cluster", "/api/links",
    "/api/errors", "/api/log", "/api/doctor",
)  # fmt: skip
LISTENER: Final = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1])
connection.request("GET", "/api/events?queues=1", headers={"Cookie": sys.argv[2]})
answer = connection.getresponse()
while answer.readline() != b"event: queues\\n":
    pass
print("listens", flush=True)
while answer.readline():
    pass
"""


def said(verb: str, folder: Path, *more: str) -> str:
    """By `shmbroker console`; nothing if it does not run."""
    command = [str(Path(sys.executable).with_name("shmbroker")), "console", verb, str(folder)]
    return subprocess.run([*command, *more], capture_output=True, text=True).stdout


class Browser:
    """Who has logged in, by a link."""

    def __init__(self, folder: Path, url: str) -> None:
        self.place = urlsplit(url).netloc
        self.cookie = ""
        link = said("open", folder).strip().partition("#link=")[2]
        content = json.dumps({"link": link}).encode()
        answer, _ = self.asks("/api/login", content)
        self.cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]

    def asks(
        self, path: str, content: bytes | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.place, timeout=PATIENCE_S)
        sent = {"Cookie": self.cookie, "Content-Type": "application/json"}
        connection.request("GET" if content is None else "POST", path, content, sent)
        answer = connection.getresponse()
        if answer.status != 200:
            raise Broken(f"{path} is answered with {answer.status}: {answer.read()!r}")
        try:
            return answer, answer.read()
        finally:
            connection.close()

    def first_page(self) -> int:
        """Until all queues are there; how many those are."""
        for path in FIRST:
            self.asks(path)
        connection = http.client.HTTPConnection(self.place, timeout=PATIENCE_S)
        connection.request("GET", "/api/events?queues=1", headers={"Cookie": self.cookie})
        answer, found, has_more = connection.getresponse(), 0, True
        while has_more:
            while answer.readline() != b"event: queues\n":
                pass
            told: dict[str, Any] = json.loads(answer.readline().partition(b" ")[2])
            found, has_more = found + len(told["rows"]), told["more"]
        connection.close()
        return found

    @contextmanager
    def listens(self) -> Iterator[None]:
        """In a process of its own."""
        program = [sys.executable, "-c", LISTENER, self.place, self.cookie]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                yield
            finally:
                process.kill()


def milliseconds(what: Callable[[], object], times: int) -> float:
    passed = []
    for _ in range(times):
        before = time.perf_counter()
        what()
        passed.append(time.perf_counter() - before)
    return median(passed) * 1e3


def costs(console: int, what: Callable[[], object], times: int) -> tuple[float, float]:
    """Milliseconds that pass, and those that the console uses of a processor."""
    before = processor_s(console)
    passed = milliseconds(what, times)
    return passed, (processor_s(console) - before) / times * 1e3


def filled(broker: Broker, count: int) -> int:
    """Every second one has messages; how many those are."""
    broker.declare_queue(BUSY)
    for number in range(count - 1):
        queue = broker.declare_queue(f"queue-{number}")
        for _ in range(MESSAGES if number % 2 else 0):
            queue.publish(b"x")
    return (count - 1) // 2 * MESSAGES


def updates(broker: Broker, browser: Browser, console: int, seconds: float, count: int) -> float:
    """Milliseconds of a processor in a second, while a tenth of the queues change."""
    with browser.listens():
        began, before = time.monotonic(), processor_s(console)
        number = 0
        while (passed := time.monotonic() - began) < seconds:
            while number < passed * count / 10:
                broker.queue(f"queue-{number % (count - 1)}").publish(b"x")
                number += 1
            time.sleep(0.05)
        return (processor_s(console) - before) / passed * 1e3


def rate(broker: Broker, messages: int) -> float:
    queue = broker.queue(BUSY)
    before = time.perf_counter()
    for _ in range(messages):
        queue.publish(b"x" * 64)
        queue.get_nowait().ack()
    return messages / (time.perf_counter() - before)


def pairs(broker: Broker, browser: Browser, count: int, messages: int) -> list[float]:
    """Rates with a listener, of those without one."""
    found = []
    for number in range(count):
        rates: dict[bool, float] = {}
        for listens in (True, False) if number % 2 else (False, True):
            if listens:
                with browser.listens():
                    rates[listens] = rate(broker, messages)
            else:
                rates[listens] = rate(broker, messages)
        found.append(rates[True] / rates[False])
    return found


def read_all(browser: Browser) -> str:
    took = {path: milliseconds(partial(browser.asks, path), 1) for path in READ}
    slowest = max(took, key=lambda path: took[path])
    return f"{slowest} takes {took[slowest]:.0f} ms, and the other {len(READ) - 1} pages less,"


def console_of(folder: Path) -> tuple[int, str]:
    ends_at = time.monotonic() + PATIENCE_S
    while not (shown := said("status", folder, "--json")):
        if time.monotonic() > ends_at:
            raise Broken(f"{folder} has no console")
        time.sleep(0.05)
    found = json.loads(shown)
    return found["process"], found["url"]


def measured(instance: Instance, given: argparse.Namespace) -> Iterator[str]:
    with instance.runs() as program:
        console, url = console_of(instance.folder)
        browser = Browser(instance.folder, url)
        with instance.connected() as broker:
            published = filled(broker, given.queues)
            passed, used = costs(console, browser.first_page, given.times)
            yield f"the first page takes {passed:.0f} ms, {used:.0f} ms of a processor"
            assert browser.first_page() == given.queues
            cost = updates(broker, browser, console, given.seconds, given.queues)
            yield f"an update each second takes {cost:.0f} ms of a processor"
            passed, used = costs(console, partial(browser.asks, "/metrics"), given.times)
            yield f"a scrape takes {passed:.0f} ms, {used:.0f} ms of a processor"
            ratios = sorted(pairs(broker, browser, given.pairs, given.messages))
            yield (
                f"a publisher with a consumer, with a browser that listens: {median(ratios):.3f} "
                f"of the rate without one ({ratios[0]:.3f} to {ratios[-1]:.3f}, "
                f"{len(ratios)} pairs)"
            )
            depth = json.loads(browser.asks("/api/state")[1])["depth"]
            assert depth >= published
        yield f"{read_all(browser)} of a broker that is live"
        program.signal(signal.SIGSTOP)
        yield f"{read_all(browser)} of one that is stopped"
        program.signal(signal.SIGKILL)
        yield f"{read_all(browser)} of one that is killed"


def tell(instance: Instance, lines: Iterable[str], before: str) -> None:
    """And leave nothing of the broker."""
    try:
        for line in lines:
            sys.stdout.write(f"{before}{line}\n")
            sys.stdout.flush()
    finally:
        said("stop", instance.folder)
        with suppress(Exception):
            vhost.delete(instance.vhost, force=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queues", type=int, default=5_000)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--messages", type=int, default=50_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        instance = Instance(Path(folder), "one", console__listen="127.0.0.1:0")
        instance.create({})
        tell(instance, measured(instance, given), f"{given.queues:,} queues: ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
