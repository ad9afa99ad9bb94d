"""The style that matters is itself a test: floors, banned calls, what README promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ["core", "ipc", "netbridge", "perf", "cli"]
"""Lowest first: each imports from those before it and from itself."""

BANNED_IN_CORE = {"os", "time", "socket", "threading", "mmap", "pathlib", "subprocess", "ctypes"}

EFFECTS = {"zmq", "time", "random", "secrets", "socket", "select", "selectors", "threading"}
CARRIES_OUT: dict[str, set[str]] = {
    "netbridge/broker/delayed.py": set(),
    "netbridge/broker/former.py": set(),
    "netbridge/broker/gates.py": set(),
    "netbridge/broker/group.py": {"threading"},
    "netbridge/broker/hosted.py": {"socket", "threading"},
    "netbridge/broker/links.py": {"time"},
    "netbridge/broker/meter.py": {"time"},
    "netbridge/broker/network.py": {"zmq", "time"},
    "netbridge/broker/operators.py": set(),
    "netbridge/broker/owner.py": {"time", "threading"},
    "netbridge/broker/programs.py": set(),
    "netbridge/broker/shipping.py": {"time"},
    "netbridge/broker/standby.py": set(),
    "netbridge/broker/table.py": set(),
    "netbridge/broker/waiting.py": {"time"},
    "netbridge/broker/whereabouts.py": {"socket"},
    "netbridge/carrier/accepted.py": {"socket"},
    "netbridge/carrier/authenticator.py": {"zmq"},
    "netbridge/carrier/dialled.py": set(),
    "netbridge/carrier/end.py": {"time"},
    "netbridge/carrier/fruitless.py": {"time"},
    "netbridge/carrier/greeting.py": {"socket"},
    "netbridge/carrier/link.py": {"zmq", "time", "random", "secrets", "threading"},
    "netbridge/carrier/listed.py": {"threading"},
    "netbridge/carrier/listener.py": {"zmq", "time", "secrets", "threading"},
    "netbridge/carrier/monitor.py": {"zmq"},
    "netbridge/carrier/opening.py": set(),
    "netbridge/carrier/sleeper.py": {"threading"},
    "netbridge/carrier/socket.py": {"zmq"},
    "netbridge/carrier/source.py": set(),
    "netbridge/carrier/synced.py": {"time"},
    "netbridge/carrier/target.py": set(),
    "netbridge/carrier/thread.py": {"zmq", "time", "threading", "select"},
    "netbridge/carrier/worker.py": {"threading"},
    "netbridge/client/broker.py": set(),
    "netbridge/client/cluster.py": {"random", "threading"},
    "netbridge/client/connecting.py": set(),
    "netbridge/client/consumer.py": set(),
    "netbridge/client/delivery.py": set(),
    "netbridge/client/discovered.py": set(),
    "netbridge/client/exchange.py": set(),
    "netbridge/client/face.py": set(),
    "netbridge/client/found.py": set(),
    "netbridge/client/inbox.py": set(),
    "netbridge/client/pending.py": set(),
    "netbridge/client/producing.py": {"threading"},
    "netbridge/client/queue.py": set(),
    "netbridge/client/subscription.py": set(),
    "netbridge/client/transaction.py": set(),
    "netbridge/client/link.py": {"time"},
    "netbridge/client/near.py": {"threading", "time"},
    "netbridge/client/record.py": {"time"},
    "netbridge/client/scheduling.py": set(),
    "netbridge/client/session.py": {"time", "secrets"},
    "netbridge/client/waiting.py": {"threading"},
    "netbridge/bridged/outbox.py": {"threading"},
    "netbridge/clustered/accepted.py": set(),
    "netbridge/clustered/anew.py": set(),
    "netbridge/clustered/asked_lives.py": set(),
    "netbridge/clustered/balancing.py": set(),
    "netbridge/clustered/colocating.py": {"time"},
    "netbridge/clustered/departure.py": {"threading", "time"},
    "netbridge/clustered/dials.py": {"time"},
    "netbridge/clustered/former.py": set(),
    "netbridge/clustered/giving.py": {"threading"},
    "netbridge/clustered/groups.py": {"time"},
    "netbridge/clustered/home.py": {"threading", "time"},
    "netbridge/clustered/inherited.py": set(),
    "netbridge/clustered/kept_lives.py": {"time"},
    "netbridge/clustered/last_values.py": set(),
    "netbridge/clustered/left.py": set(),
    "netbridge/clustered/listening.py": {"zmq"},
    "netbridge/clustered/members.py": {"time"},
    "netbridge/clustered/messages.py": {"time"},
    "netbridge/clustered/owner.py": {"secrets"},
    "netbridge/clustered/remote_programs.py": set(),
    "netbridge/clustered/rows.py": set(),
    "netbridge/clustered/setup.py": set(),
    "netbridge/clustered/stand_ins.py": set(),
    "netbridge/clustered/streams.py": set(),
    "netbridge/clustered/stuck.py": set(),
    "netbridge/clustered/successor.py": set(),
    "netbridge/clustered/topics.py": set(),
    "netbridge/clustered/towards.py": {"time"},
    "netbridge/clustered/voters.py": set(),
    "netbridge/clustered/voting.py": set(),
    "netbridge/discovered/announcer.py": {"threading", "time"},
    "netbridge/discovered/broadcasts.py": set(),
    "netbridge/discovered/discoverer.py": {"threading", "time"},
    "netbridge/discovered/registry.py": set(),
    "netbridge/discovered/udp.py": {"socket", "time"},
    "netbridge/discovered/wake.py": {"socket", "select"},
    "netbridge/engine/sql.py": set(),
    "netbridge/engine/voters.py": {"time", "threading", "select"},
    "netbridge/engine/zookeeper.py": {"threading"},
    "netbridge/networked/awaited.py": {"threading", "select"},
    "netbridge/networked/links.py": {"time"},
    "netbridge/networked/looking.py": set(),
    "netbridge/networked/supplying.py": {"threading", "time"},
    "netbridge/replicated/lessened.py": set(),
    "netbridge/transferred/agents.py": {"time"},
    "netbridge/transferred/former.py": set(),
    "netbridge/transferred/overflow.py": set(),
    "netbridge/transferred/subscriber.py": set(),
    "netbridge/transferred/upstream.py": set(),
    "netbridge/paired/acting.py": set(),
    "netbridge/paired/network.py": {"time"},
    "netbridge/paired/owner.py": set(),
    "netbridge/paired/talks.py": {"time"},
    "netbridge/queue_replicated/confirming.py": set(),
    "netbridge/queue_replicated/feeding.py": {"time"},
    "netbridge/queue_replicated/following.py": {"time"},
    "netbridge/queue_replicated/replicas.py": {"time"},
    "netbridge/replica/applying.py": {"threading"},
    "netbridge/replica/feeding.py": {"time"},
    "netbridge/replica/following.py": {"time"},
    "netbridge/replica/live.py": {"time"},
    "netbridge/replica/replica.py": {"threading", "time"},
    "netbridge/replica/warm.py": set(),
    "netbridge/replicated/acting.py": {"time"},
    "netbridge/replicated/answers.py": set(),
    "netbridge/replicated/aside.py": set(),
    "netbridge/replicated/backups.py": set(),
    "netbridge/replicated/checking.py": set(),
    "netbridge/replicated/deaths.py": set(),
    "netbridge/replicated/draining.py": {"threading"},
    "netbridge/replicated/diverged.py": set(),
    "netbridge/replicated/instance.py": {"threading"},
    "netbridge/replicated/ordered.py": set(),
    "netbridge/replicated/own_rings.py": set(),
    "netbridge/replicated/process.py": {"time"},
    "netbridge/replicated/programs.py": set(),
    "netbridge/replicated/reaching.py": {"socket", "threading", "time"},
    "netbridge/replicated/served.py": {"threading", "time"},
    "netbridge/replicated/showing.py": set(),
    "netbridge/replicated/store.py": {"threading"},
    "netbridge/replicated/in_cluster.py": set(),
    "netbridge/replicated/votes.py": set(),
    "netbridge/replicated/waiting.py": set(),
    "netbridge/replicated/talks.py": {"zmq", "threading", "time"},
    "netbridge/security/curve.py": {"zmq"},
    "netbridge/security/key_file.py": set(),
    "netbridge/serving/audience.py": {"time"},
    "netbridge/serving/commit.py": {"time"},
    "netbridge/serving/confirms.py": set(),
    "netbridge/serving/consumer.py": {"time"},
    "netbridge/serving/destination.py": {"time"},
    "netbridge/serving/looking.py": {"time"},
    "netbridge/serving/orders.py": {"threading"},
    "netbridge/serving/producer.py": {"time"},
    "netbridge/serving/programs.py": set(),
    "netbridge/serving/rejections.py": {"time"},
    "netbridge/serving/requests.py": set(),
    "netbridge/serving/served.py": set(),
    "netbridge/serving/service.py": {"time"},
    "netbridge/serving/travelling.py": {"threading", "time"},
    "netbridge/serving/watcher.py": set(),
    "netbridge/broker/voters.py": set(),
    "netbridge/broker/witness.py": {"zmq", "time", "secrets", "threading"},
    "netbridge/witness/state.py": set(),
    "netbridge/witness/voters.py": {"time"},
    "netbridge/witness/witness.py": {"time"},
    "netbridge/simulation/world.py": {"random"},  # of the seed
    "netbridge/simulation/fault.py": {"random"},
    "netbridge/simulation/agents/cast.py": {"random"},
    "netbridge/simulation/networks/cast.py": {"random"},
    "netbridge/simulation/peers/fault.py": {"random"},
    "netbridge/simulation/cluster/cast.py": {"random"},
    "netbridge/simulation/cluster/fault.py": {"random"},
    "netbridge/simulation/election/fault.py": {"random"},
    "netbridge/simulation/queue_replicas/fault.py": {"random"},
    "netbridge/simulation/queue_replicas/scene.py": {"random"},
    "netbridge/simulation/replication/fault.py": {"random"},
    "netbridge/simulation/replication/lives.py": {"random"},
    "netbridge/simulation/replication/one_host.py": {"random"},
    "netbridge/simulation/replication/ordered.py": {"random"},
    "netbridge/simulation/replication/scene.py": {"random"},
    "netbridge/simulation/__main__.py": {"time"},  # how long it took
}
"""Files of netbridge that may import what has effects or comes from outside.  They decide nothing;
all others decide, and get times, frames and random bytes as arguments."""


def modules(floor: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / floor).rglob("*.py")):
        yield path, ast.parse(path.read_text())


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield node.module or ""


@pytest.mark.parametrize("floor", FLOORS)
def test_floors_import_downwards_only(floor: str) -> None:
    allowed = set(FLOORS[: FLOORS.index(floor) + 1])
    for path, tree in modules(floor):
        for name in imported(tree):
            parts = name.split(".")
            assert parts[0] not in FLOORS, f"{path}: import shmbroker.{name}, not {name}"
            if parts[0] == "shmbroker" and len(parts) > 1:
                if parts[1] in FLOORS:
                    assert parts[1] in allowed, f"{path} is below {name}"


def test_core_knows_no_system() -> None:
    for path, tree in modules("core"):
        assert not {name.split(".")[0] for name in imported(tree)} & BANNED_IN_CORE, path


def test_who_decides_has_no_effects_and_no_clock() -> None:
    """A machine that is pure runs in the simulation as it runs in the broker."""
    carrying = {f"shmbroker.{path[:-3].replace('/', '.')}" for path in CARRIES_OUT}
    for path, tree in modules("netbridge"):
        name = str(path.relative_to(ROOT))
        names = set(imported(tree))
        effects = {each.split(".")[0] for each in names} & EFFECTS
        assert effects <= CARRIES_OUT.get(name, set()), name
        if name not in CARRIES_OUT and "simulation" not in path.parts:
            assert not names & carrying, f"{name} decides, and imports what carries out"


COUNTS_QUEUES = {"netbridge/clustered/ungrouped.py", "netbridge/clustered/unselected.py"}
"""Of `shmbroker doctor`."""


def test_who_serves_counts_no_messages_to_learn_of_queues() -> None:
    """`broker.queues()` looks at each slot: with 1 GiB a takeover took 7 times as long."""
    counting = {
        str(path.relative_to(ROOT))
        for folder in ("netbridge", "ipc/instance", "ipc/broker")
        for path, _ in modules(folder)
        if re.search(r"\bbroker\.queues\(\)", path.read_text())
    }
    assert counting == COUNTS_QUEUES


def test_every_package_is_installed() -> None:
    program = f"""
import sys; sys.argv = ["setup.py", "--quiet", "--version"]; sys.path.insert(0, {str(ROOT)!r})
import setuptools; setuptools.setup = lambda **options: print(*sorted(options["packages"]))
exec(open("setup.py").read(), {{"__file__": {str(ROOT / "setup.py")!r}}})
"""
    listed = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True).split()
    folders = {
        "shmbroker." + ".".join(init.parent.relative_to(ROOT).parts)
        for floor in FLOORS
        for init in (ROOT / floor).rglob("__init__.py")
    }
    assert set(listed) == {"shmbroker", "shmbroker.perf.native", *folders}


def test_both_sides_of_every_sync_point_are_marked() -> None:
    marks: dict[str, int] = {}
    for path, _ in modules("core"):
        for name in re.findall(r"# SYNC POINT: ([\w-]+)", path.read_text()):
            marks[name] = marks.get(name, 0) + 1
    assert marks
    assert not [name for name, count in marks.items() if count < 2]
    listed = (ROOT / "ARCHITECTURE.md").read_text()
    assert not [name for name in marks if f"`{name}`" not in listed]


def test_what_readme_says_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", readme):
        assert f"\n{target}:" in makefile, f"make {target}"
    for path in re.findall(r"`((?:examples|tests|perf|core|ipc)/[\w./]+)`", readme):
        assert (ROOT / path).exists(), path


def test_importing_the_package_costs_next_to_nothing() -> None:
    program = "import sys, shmbroker; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"numba", "numpy", "llvmlite", "cffi", "zmq", "lark"} & {
        name.split(".")[0] for name in loaded
    }


def test_a_plain_client_needs_neither_numba_nor_zmq() -> None:
    program = "import sys, shmbroker; shmbroker.Ring, shmbroker.connect; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"numba", "numpy", "llvmlite", "zmq", "lark"} & {
        name.split(".")[0] for name in loaded
    }
