"""Programs are disconnected and users changed, at the console and by commands, of one broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, ConnectionClosed
from shmbroker.perf.machine.port import free_port
from tests.cli.command import PATIENCE_SECONDS, eventually
from tests.cli.console.conftest import ADMIN, Site, _shell, configured, with_credentials
from tests.cli.console.visitor import Visitor, refused

SHOP, OTHER = "shop shop shop shop", "another good one"
WHY = "disconnected by an operator"


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Site]:
    """A live that programs on other hosts come to."""
    shell, remove = _shell()
    made = configured(shell, tmp_path_factory.mktemp("console") / "one")
    with_credentials(made.folder)
    file = made.folder / "shmbroker.toml"
    file.write_text(
        f'{file.read_text()}\n[credentials.shop]\npassword = "{SHOP}"\n'
        f'\n[acceptors.programs]\nuri = "tcp://127.0.0.1:{port}"\nroles = ["client"]\n'
    )
    try:
        made.start()
        yield made
    finally:
        made.close()
        remove()


@contextmanager
def far(port: int) -> Iterator[Any]:
    with shmbroker.connect(
        f"tcp://127.0.0.1:{port}", user="shop", password=SHOP, name="far"
    ) as broker:
        yield broker


@pytest.fixture
def near(site: Site) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        yield broker


def remote(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Nothing as long as it has no link."""
    found = [each for each in rows if each["remote"] and each["remote"]["attached"]]
    assert len(found) <= 1
    return next(iter(found), {})


def reloads(site: Site, change: Callable[[], object]) -> None:
    """Until the console has read the configuration again."""
    before = len(site.lines("console reloaded"))
    change()
    eventually(lambda: len(site.lines("console reloaded")) > before)


def test_the_node_tells_where_it_listens(site: Site, port: int) -> None:
    [row] = site.visitor("viewer").reads("/api/ha")["listens"]
    assert (row["name"], row["roles"]) == ("programs", ["client"])
    assert row["uri"] == f"tcp://127.0.0.1:{port}"


def test_a_program_on_another_host_is_seen_and_disconnected(
    site: Site, port: int, near: Broker
) -> None:
    events: list[str] = []
    queue = near.declare_queue("far")
    queue.publish_many([b"a" * 5000, b"b"])
    with far(port) as program:
        program.on_event(lambda event, detail: events.append(detail))
        held = program.queue("far").get(timeout=10)
        admin = site.visitor()
        row = eventually(lambda: remote(admin.reads("/api/participants")))
        said = row["remote"]
        assert (row["name"], said["user"], said["address"]) == ("far", "shop", "127.0.0.1")
        assert said["sent_bytes"] > 5000 > said["received_bytes"] > 0
        listed = remote(site.shell.does("participants", "--json").json)
        assert (listed["id"], listed["remote"]["session"]) == (row["id"], said["session"])
        assert "shop@127.0.0.1" in site.shell.does("participants").out
        answer = site.visitor("viewer").post("/api/do/disconnect", {"id": str(row["id"])})
        refused(answer, 403, "role")
        assert admin.does("disconnect", id=row["id"])["left"] is True
        with queue.get(timeout=10) as message:
            assert message.deliveries == 1
        eventually(lambda: any(WHY in each for each in events))
        program.queue("far").publish(b"c")  # it has come again, as clients do
        again = eventually(lambda: remote(site.shell.does("participants", "--json").json))["remote"]
        site.shell.does("disconnect", again["session"][:8])
        del held
    assert queue.receive_many() == [b"b", b"c"]
    verbs = [(each["verb"], each.get("id")) for each in site.lines("audit")]
    assert ("console disconnect", str(row["id"])) in verbs
    assert ("disconnect", None) in verbs


def test_a_program_of_this_host_is_disconnected(site: Site, near: Broker) -> None:
    near.declare_queue("near")
    other = shmbroker.connect(f"shm://{site.shell.vhost}", name="other")

    def waits() -> None:
        with pytest.raises(ConnectionClosed, match=WHY):
            other.queue("near").get(timeout=PATIENCE_SECONDS)
        other.close()

    thread = threading.Thread(target=waits)
    thread.start()
    said = site.shell.does("disconnect", str(other.participant), "--timeout", "60s").said
    thread.join()
    assert said == "other is disconnected\n"
    number = str(near.participant)
    assert f"kill {_pid(near)}" in site.shell.does("disconnect", number, "--timeout", "0s").said
    with pytest.raises(ConnectionClosed, match=WHY):
        near.queue("near").get(timeout=PATIENCE_SECONDS)


def _pid(broker: Broker) -> int:
    [found] = [each.pid for each in broker.participants() if each.id == broker.participant]
    return found


def test_what_cannot_be_disconnected_is_said(site: Site) -> None:
    [own] = [each for each in site.visitor().reads("/api/participants") if each["own"]][:1]
    answer = site.shell("disconnect", str(own["id"]))
    assert (answer.code, "which needs it: shmbroker stop" in answer.said) == (1, True)
    assert "there is no participant '4000'" in site.shell("disconnect", "4000").said
    refused(site.visitor().post("/api/do/disconnect", {"id": "4000"}), 404, "NotFound")
    refused(site.visitor().post("/api/do/disconnect", {"id": 4000}), 404, "NotFound")
    for wrong in (True, 7.5, [7], None):
        refused(site.visitor().post("/api/do/disconnect", {"id": wrong}), 400, "request")


def test_a_user_comes_and_goes_by_commands(site: Site) -> None:
    folder, shell = str(site.folder), site.shell
    reloads(site, lambda: shell.does(
        "user", "add", folder, "eve", "--role", "viewer", stdin=f"{OTHER}\n".encode()
    ))  # fmt: skip
    eve = Visitor(site.url)
    assert eve.log_in(user="eve", password=OTHER).json["role"] == "viewer"
    listed = shell.does("user", "list", folder)
    assert "eve" in shell.does("user", "list", folder, "--names").lines
    assert OTHER not in listed.out
    reloads(site, lambda: shell.does("user", "change", folder, "eve", "--role", "admin"))
    refused(eve.get("/api/state"), 401, "session")
    reloads(site, lambda: shell.does("user", "password", folder, "eve", stdin=b"third good one\n"))
    assert eve.log_in(user="eve", password="third good one").json["role"] == "admin"
    assert shell("user", "remove", folder, "eve").code == 2  # without --yes
    reloads(site, lambda: shell.does("user", "remove", folder, "eve", "--yes"))
    refused(eve.get("/api/state"), 401, "session")
    assert "operator is the last admin" in shell("user", "remove", folder, "operator", "--yes").said
    verbs = [each["verb"] for each in site.lines("audit") if each.get("name") == "eve"]
    assert verbs == ["user add", "user change", "user password", "user remove"]


def test_a_user_comes_and_goes_at_the_console(site: Site) -> None:
    operator = Visitor(site.url)
    operator.log_in(user="operator", password=ADMIN)
    viewer = site.visitor("viewer")
    refused(viewer.get("/api/users"), 403, "role")
    refused(viewer.post("/api/do/add-user", {"name": "mallory"}), 403, "role")
    csrf, operator.csrf = operator.csrf, ""
    refused(operator.post("/api/do/remove-user", {"name": "guest"}), 403, "csrf")
    operator.csrf = csrf
    reloads(site, lambda: operator.does(
        "add-user", name="olga", roles=["viewer"], password=OTHER
    ))  # fmt: skip
    olga = Visitor(site.url)
    assert olga.log_in(user="olga", password=OTHER).status == 200
    [row] = [each for each in operator.reads("/api/users") if each["name"] == "olga"]
    assert (row["roles"], row["console"], row["password"]) == (["viewer"], True, "file")
    reloads(site, lambda: operator.does("change-user", name="olga", console=False))
    refused(olga.get("/api/state"), 401, "session")
    reloads(site, lambda: operator.does("remove-user", name="olga"))
    said = (site.folder / "log" / "shmbroker.log").read_text()
    assert OTHER not in said
    assert '"verb": "console add-user", "user": "operator", "name": "olga"' in said


def test_nobody_loses_his_own_rights_by_mistake(site: Site) -> None:
    operator = Visitor(site.url)
    operator.log_in(user="operator", password=ADMIN)
    for verb, given in [
        ("remove-user", {}), ("change-user", {"roles": ["viewer"]}),
        ("change-user", {"console": False}), ("remove-user", {"confirm": "guest"}),
    ]:  # fmt: skip
        answer = operator.post(f"/api/do/{verb}", {"name": "operator", **given})
        refused(answer, 409, "self")
    answer = operator.post("/api/do/remove-user", {"name": "operator", "confirm": "operator"})
    refused(answer, 400, "LastAdmin")
    for given in ({}, {"roles": "viewer"}, {"roles": ["king"]}, {"password": 7}, {"console": 1}):
        assert operator.post("/api/do/change-user", {"name": "guest", **given}).status == 400
    assert operator.post("/api/do/remove-user", {"name": "nobody"}).status == 404
    assert operator.reads("/api/state")["state"] == "live"
