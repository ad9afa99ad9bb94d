"""A member of a replicated node whose file is another one by now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.security.key_file import KnownKey, create, trust
from shmbroker.netbridge.wire.words import Role
from shmbroker.perf.machine.port import free_port
from tests.netbridge.replicated.conftest import PATIENCE, Made

OF_REPLICATION = ("[ha.replication]", "[acceptors.members]")


def reloaded(folder: Path, text: str) -> dict[str, Any]:
    (folder / FILE).write_text(text)
    answer = reloading.asked(folder, PATIENCE)
    assert answer is not None, "it has ended"
    return answer


def without(text: str, tables: tuple[str, ...]) -> str:
    kept, table = [], ""
    for line in text.splitlines():
        table = line if line.startswith("[") else table
        if table not in tables and not line.startswith(("members =", "role = \"auto\"")):
            kept.append(line)
    return "\n".join(kept)


def test_what_needs_a_restart_stays_as_it_is(node: Made) -> None:
    """Another address for the members, another policy, and nowhere to come to for members."""
    two = node()
    live = two["a"].start().becomes("live")
    text = (live.folder / FILE).read_text()
    before, _, rest = text.partition("[acceptors.members]")
    port = int(rest.split("tcp://127.0.0.1:")[1].split('"')[0])
    moved = f"{before}[acceptors.members]{rest.replace(str(port), str(free_port()), 1)}"
    answer = reloaded(live.folder, moved)
    assert answer["ignored"] == ["acceptors.members.uri"]
    two["b"].start()
    two.says("b", "in sync")
    alone = without(text, OF_REPLICATION).replace('"replication"', '"live-only"')
    assert "ha.policy" in reloaded(live.folder, alone)["ignored"]
    answer = reloaded(live.folder, text.replace('["replica"]', '["client"]'))
    assert "there is no [acceptors.NAME] with roles" in answer["why"]
    two["b"].kill()
    two.says("a", "alone")
    two["b"].start()
    two.says("b", "in sync")


def test_a_member_comes_by_a_key_that_is_known_for_that(node: Made) -> None:
    two = node(a={"security.known-keys": "known.keys"}, b={"security.key-file": "b.key"})
    live, known = two["a"].folder, two["a"].folder / "known.keys"
    pair = create(two["b"].folder / "b.key")
    trust(known, KnownKey(pair.public, (Role.CLIENT,), "b"))
    two["a"].start().becomes("live")
    two["b"].start()
    until = time.monotonic() + PATIENCE
    while not any(line.get("what") == "a stranger was refused" for line in two["a"].said()):
        assert time.monotonic() < until, two.story()
        time.sleep(0.02)
    trust(known, KnownKey(pair.public, (Role.REPLICA,), "b"))
    assert "why" not in reloaded(live, (live / FILE).read_text())
    two["b"].kill()
    two["b"].start()  # who was refused comes again a minute later
    two.says("b", "in sync")


def test_a_command_that_is_new_is_run_at_the_next_takeover(node: Made) -> None:
    two = node().up()
    backup = two["b"].folder
    text = (backup / FILE).read_text()
    answer = reloaded(backup, text.replace("[ha]\n", '[ha]\non-promote = [["false"]]\n', 1))
    assert answer.get("applied") == ["ha.on-promote"], answer
    two["a"].kill()
    two.says("b", "held: on-promote said no")
