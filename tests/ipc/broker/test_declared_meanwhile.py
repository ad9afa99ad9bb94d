"""A catalog that changes while the journaler looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.changed_library import IPC, ChangedLibrary, all_sources
from tests.support.host import PATIENCE, after_the_host_died

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


CONFIRMS = """
import sys
from pathlib import Path
import shmbroker
from tests.support.host import PATIENCE, journaling

vhost, folder = sys.argv[1], Path(sys.argv[2])
with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, folder):
    queue = broker.declare_queue("q", durable=True)
    for _ in range(20):
        queue.publish(b"x", timeout=PATIENCE)
    with broker.transaction(timeout=PATIENCE) as transaction:
        transaction.publish(queue, b"committed")
    broker.declare_queue("late", durable=True).publish(b"x", timeout=PATIENCE)
"""


def run(library: Path, program: str, vhost: str, folder: Path) -> None:
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, vhost, str(folder / "journal")]
    subprocess.run(command, env=environment, cwd=folder, timeout=2 * PATIENCE, check=True)


def library_that_changes_it(target: Path) -> Path:
    """Each look at exchanges and bindings has it changed, as where many clients come and go."""
    reads = "    each_of_both(connection, digest_one, &digest);\n"
    changes = "    sb_catalog_changed(connection->catalog.memory);\n"
    changed = ChangedLibrary(target, all_sources())
    return changed.made("changes", "catalog/declaration.c", reads, reads + changes)


def test_it_confirms_while_clients_come_and_go(
    vhost: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = library_that_changes_it(tmp_path_factory.mktemp("native"))
    run(library, CONFIRMS, vhost, tmp_path)
    with after_the_host_died(vhost, tmp_path / "journal") as broker:
        assert sorted(each.name for each in broker.queues()) == ["late", "q"]


def library_that_stops(target: Path) -> Path:
    """The library, whose journaler waits before and behind the catalog of a segment's beginning."""
    file = "broker/snapshot.c"
    text = (IPC / file).read_text()
    begin = text.index("int64_t journaler_snapshot(")
    staged = "stage_catalog(journaler, journal);\n"
    whole = text[begin : text.index(staged, begin) + len(staged)]
    head, stages = whole.rsplit("    int64_t code", 1)
    stopping = [STOPS, head, '    stop("before", "unbound");\n', "    int64_t code", stages,
                '    stop("behind", "bound");\n']  # fmt: skip
    changed = ChangedLibrary(target, all_sources())
    return changed.made("stops", file, whole, "".join(stopping))


def test_a_binding_that_is_gone_as_a_segment_begins_is_not_gone_for_good(
    vhost: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = library_that_stops(tmp_path_factory.mktemp("native"))
    run(library, BINDS_BETWEEN, vhost, tmp_path)
    with after_the_host_died(vhost, tmp_path / "journal") as broker:
        assert [each.destination for each in broker.bindings()] == ["q"]
