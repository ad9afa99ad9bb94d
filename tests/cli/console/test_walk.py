"""The walk of a replicated pair, made by `create`, with a Chromium on both consoles.

    start both --> ten messages --> stop live --> backup is live --> start live --> failback
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shmbroker.cli.console.server import running
from shmbroker.netbridge.config.config import load
from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell, eventually
from tests.cli.console.chromium import chromium, expect, profile, seen
from tests.cli.test_create import refused

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOVED = 7
"""Ports of the backup on this host."""

PATIENT = [
    "--set", "link-defaults.heartbeat-interval=3s", "--set", "ha.replication.replica-timeout=9s",
]  # fmt: skip
"""A member that a busy machine keeps waiting is none that hangs."""


@dataclass(frozen=True)
class Pair:
    shell: Shell
    live: Path
    backup: Path
    ports: list[str]

    def url(self, of: Path) -> list[str]:
        port = int(self.ports[1]) + (MOVED if of == self.backup else 0)
        return ["--url", f"tcp://127.0.0.1:{port}"]

    def start(self, folder: Path) -> None:
        self.shell.does("start", str(folder))
        eventually(lambda: running(folder))

    def is_in_sync(self) -> None:
        expected = ("ha", "status", str(self.backup), "--expect", "in sync")
        eventually(lambda: self.shell(*expected).code == 0)

    def link(self, folder: Path) -> str:
        return self.shell.does("console", "open", str(folder)).out.strip()


@pytest.fixture
def pair(shell: Shell, tmp_path: Path) -> Iterator[Pair]:
    port = free_port(*(each + moved for each in (0, 2, 3) for moved in (0, MOVED)))
    ports = ["--port", f"{port}", "--console-port", f"{free_port(MOVED)}"]
    made = Pair(shell, tmp_path / "live", tmp_path / "backup", ports)
    shell.does(
        "create", str(made.live), "--clustered", "--replicated", "--vhost", shell.vhost,
        "--on-partition", "continue-alone", "--queues", "first,second", *ports, *PATIENT,
    )  # fmt: skip
    beside = ["--join", str(made.live), "--role", "backup", "--port-offset", f"{MOVED}"]
    said = shell.does("create", str(made.backup), *beside, *ports, *PATIENT).said
    assert "has both members now" in said
    yield made
    for each in (made.backup, made.live):
        shell("kill", str(each))
        shell("console", "stop", str(each))
    for name in (shell.vhost, f"{shell.vhost}-backup"):
        shell("vhost", "delete", name, "--force", "--yes")


def joins_by_uri(shell: Shell, live: Path, uri: str, third: Path, *ports: str) -> None:
    """As from another host: with a copy of the password of brokers, and a login of programs."""
    words = [str(third), "--join", uri, "--role", "backup", *ports, *PATIENT]
    assert "takes --cluster-password-file" in refused(shell, *words)
    wrong = third.with_name("wrong")
    wrong.write_text("a password of another cluster\n")
    wrong.chmod(0o600)
    said = refused(shell, *words, "--cluster-password-file", str(wrong))
    assert "not those by which these brokers know each other" in said
    said = shell.does("create", *words, "--cluster-password-file", str(live / "cluster.password"))
    assert f"each member at {uri}" in said.said
    assert "third=tcp://" in said.said
    (config, network), (_, known) = load(third), load(live)
    assert [name for name, _ in config.members] == ["live", "backup", "third"]
    assert network.replication == known.replication
    for file in ("cluster.password", "programs.password"):
        assert (third / file).read_text() == (live / file).read_text()


def shows_messages(page: Page, count: int) -> None:
    """Behind 127.0.0.1 > addresses > haQueue > queues > anycast > haQueue."""
    place = page.locator("#side .tree > li")
    for name in ("127.0.0.1", "addresses", "haQueue", "queues", "anycast"):
        node = place.filter(has=page.locator(f"> details > summary:text-is('{name}')"))
        expect(node).to_have_count(1)
        if node.locator("> details:not([open])").count():
            node.locator("> details > summary").click()
        place = node.locator("> details > ul > li")
    place.get_by_role("link", name="haQueue", exact=True).click()
    expect(page.locator("main h1")).to_have_text("haQueue")
    expect(page.locator("#messages tbody tr")).to_have_count(count)


def shows_cluster_alone(page: Page) -> None:
    expect(page.locator("#mode")).to_have_text("passive")
    tree = page.locator("#side .tree > li > details > ul > li")
    expect(tree.locator("> details > summary")).to_have_text(["cluster"])
    parts = tree.locator("> details > ul > li")
    expect(parts).to_have_count(3)
    for at, name in enumerate(("connectors", "broadcast groups", "discovery groups")):
        expect(parts.nth(at)).to_contain_text(name)
    expect(tree).not_to_contain_text("haQueue")


def test_the_walk_of_a_replicated_pair(pair: Pair, tmp_path: Path) -> None:
    shell, live, backup = pair.shell, pair.live, pair.backup
    with chromium() as started, profile(started) as browser:
        pair.start(live)
        pair.start(backup)
        joins_by_uri(shell, live, pair.url(live)[1], tmp_path / "third", *pair.ports)
        pair.is_in_sync()
        destination = ["--message-count", "10", "--destination", "queue://haQueue"]
        produced = shell.does("producer", *destination, *pair.url(live))
        assert "queue 'haQueue' is made, durable" in produced.said
        assert "10 messages" in produced.out
        at_live, at_backup = browser.new_page(), browser.new_page()
        at_live.goto(pair.link(live))
        shows_messages(at_live, 10)
        seen(at_live, "walk-live")

        at_backup.goto(pair.link(backup))
        shows_cluster_alone(at_backup)
        seen(at_backup, "walk-passive")
        at_backup.goto(f"{at_backup.url.partition('#')[0]}#queue=haQueue")
        expect(at_backup.locator(".notice")).to_contain_text("is passive")
        at_backup.locator("#live").click()  # to the other console, where this browser has a session
        expect(at_backup.locator("#messages tbody tr")).to_have_count(10)
        at_backup.go_back()
        shows_cluster_alone(at_backup)

        shell.does("stop", str(live))
        assert '"console ended"' in (live / "log/shmbroker.log").read_text()
        expect(at_backup.locator("#mode")).to_have_text("live")
        expect(at_live.locator("#mode")).to_have_text("no connection")
        shows_messages(at_backup, 10)
        seen(at_backup, "walk-takeover")
        found = shell.does("queue", "list", "--json", *pair.url(backup)).json
        depths = {each["name"]: each["depth"] for each in found}
        assert depths == {"haQueue": 10, "first": 0, "second": 0}
        alone = [each for each in shell("doctor", "--json").json if str(backup) in each["subject"]]
        assert "a confirm means disk, not disk+replicated" in alone[0]["problem"]
        shell.does("producer", "--message-count", "1", *destination[2:], *pair.url(backup))

        pair.start(live)
        shell.does("status", str(live), "--wait", "live", "--timeout", "60s")
        pair.is_in_sync()
        shows_cluster_alone(at_backup)
        expect(at_backup.locator("#live")).to_be_visible()  # it is told without a reload
        seen(at_backup, "walk-passive-again")
        at_live.goto(pair.link(live))
        shows_messages(at_live, 11)
        seen(at_live, "walk-failback")
