"""Exchanges and bindings that change while the journaler writes what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.changed_library import IPC, ChangedLibrary, all_sources
from tests.support.host import after_the_host_died

ROOT = Path(__file__).parents[3]

STOPS = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
/* It says that it is here, and goes on when it is told to. */
static void stop(const char *asks, const char *answered)
{
    const struct timespec pause = {0, 1000000};
    if (access("armed", F_OK) != 0 || access(asks, F_OK) == 0)
        return;
    fclose(fopen(asks, "w"));
    while (access(answered, F_OK) != 0)
        nanosleep(&pause, NULL);
}
"""

BINDS_BETWEEN = """
import sys
from pathlib import Path
from time import monotonic, sleep
import shmbroker
from tests.support.host import PATIENCE, journaling

SMALL = 64 << 10
vhost, folder = sys.argv[1], Path(sys.argv[2])
end = monotonic() + PATIENCE
with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, folder, segment=SMALL):
    queue = broker.declare_queue("q", durable=True)
    broker.declare_exchange("news", "fanout")
    broker.bind("news", "q")
    queue.publish(b"x", timeout=PATIENCE)
    Path("armed").touch()
    while not Path("before").exists():
        assert monotonic() < end
        queue.publish(bytes(SMALL // 8), confirm="shm")
        sleep(0.001)
    broker.unbind("news", "q")
    Path("unbound").touch()
    while not Path("behind").exists():
        assert monotonic() < end
        sleep(0.001)
    broker.bind("news", "q")
    Path("bound").touch()
    for _ in range(2):
        queue.publish(b"y", timeout=PATIENCE)
"""


def library_that_stops(target: Path) -> Path:
    """The library, whose journaler waits before and behind the catalog of a segment's beginning."""
    file = "broker/snapshot.c"
    text = (IPC / file).read_text()
    begin, staged = text.index("int64_t journaler_snapshot("), "stage_catalog(journaler, journal);\n"
    whole = text[begin : text.index(staged, begin) + len(staged)]
    head, stages = whole.rsplit("    int64_t code", 1)
    stopping = [STOPS, head, '    stop("before", "unbound");\n', "    int64_t code", stages,
                '    stop("behind", "bound");\n']  # fmt: skip
    changed = ChangedLibrary(target, all_sources())
    return changed.made("stops", file, whole, "".join(stopping))


def test_a_binding_that_is_gone_as_a_segment_begins_is_not_gone_for_good(
    vhost: str, tmp_path: Path
) -> None:
    (tmp_path / "native").mkdir()
    environment = os.environ | {
        "LD_PRELOAD": str(library_that_stops(tmp_path / "native")),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", BINDS_BETWEEN, vhost, str(tmp_path / "journal")]
    subprocess.run(command, env=environment, cwd=tmp_path, timeout=120, check=True)
    with after_the_host_died(vhost, tmp_path / "journal") as broker:
        assert [each.destination for each in broker.bindings()] == ["q"]
