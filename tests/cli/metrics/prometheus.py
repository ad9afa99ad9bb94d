"""A Prometheus of our own: in a folder that goes with it, on a port of loopback."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shmbroker.cli.metrics.exposition import CONTENT_TYPE
from shmbroker.perf.machine.port import free_port
from tests.cli.command import PATIENCE_SECONDS
from tests.support.postgres import is_killed_with_us

CONFIGURATION = """
global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}
rule_files: [{rules}]
scrape_configs:
  - job_name: shmbroker
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip("needs Prometheus: sudo apt-get install prometheus (tools/prometheus)")
    return found


def promtool(*words: str, text: str = "") -> str:
    """Its output; it has to be content."""
    done = subprocess.run(
        [program("promtool"), *words], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def served(page: Callable[[], str]) -> Iterator[int]:
    """The port where `/metrics` is this page, made anew for each scrape."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.end_headers()
            self.wfile.write(page().encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """A scrape is no news."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Prometheus:
    def __init__(self, folder: Path, target: int, rules: str) -> None:
        (folder / "rules.yml").write_text(rules)
        file = folder / "prometheus.yml"
        file.write_text(CONFIGURATION.format(rules=folder / "rules.yml", port=target))
        self._url = f"http://127.0.0.1:{free_port()}"
        self._log = folder / "prometheus.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program("prometheus"), f"--config.file={file}",
                 f"--storage.tsdb.path={folder / 'data'}",
                 f"--web.listen-address={self._url.removeprefix('http://')}"],
                stdout=log, stderr=log, preexec_fn=is_killed_with_us,
            )  # fmt: skip

    def close(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _asked(self, path: str, **query: str) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)["data"]

    def eventually(self, expression: str, value: float) -> dict[str, str]:
        """The labels of the sample that has this value, as soon as there is one."""
        ends_at = time.monotonic() + PATIENCE_SECONDS
        found: Any = None
        while time.monotonic() < ends_at:
            try:
                found = self._asked("query", query=expression)["result"]
            except urllib.error.URLError:
                assert self._process.poll() is None, self._log.read_text()
            for each in found or ():
                if float(each["value"][1]) == value:
                    labels: dict[str, str] = each["metric"]
                    return labels
            time.sleep(0.1)
        raise AssertionError(f"{expression}: {found}")
