"""What a console tells of a live, and what an admin does there."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from importlib.metadata import version
from urllib.parse import urlsplit

import pytest

import shmbroker
from shmbroker.cli.console import tree
from shmbroker.cli.console.snapshot import Snapshot
from tests.cli.command import eventually
from tests.cli.console.conftest import Site
from tests.cli.console.visitor import PATIENCE_SECONDS, Visitor, refused


def names(node: dict[str, object], *path: str) -> list[str]:
    """Of the children behind a path of the tree."""
    for name in path:
        children = node["children"]
        assert isinstance(children, list)
        [node] = [each for each in children if each["name"] == name]
    children = node["children"]
    assert isinstance(children, list)
    return [each["name"] for each in children]


def test_the_tree(site: Site) -> None:
    site.shell.does("exchange", "declare", "prices", "topic")
    site.shell.does("bind", "prices", "orders", "--key", "eu.#")
    shown = site.visitor("viewer").reads("/api/tree")
    assert shown["name"] == "127.0.0.1"
    assert names(shown) == ["addresses", "cluster"]
    assert names(shown, "addresses", "orders", "queues", "anycast") == ["orders"]
    assert names(shown, "addresses", "prices", "queues", "multicast") == ["orders"]
    assert names(shown, "cluster") == ["connectors", "broadcast groups", "discovery groups"]
    site.shell.does("exchange", "delete", "prices", "--force", "--yes")


def test_a_tree_of_thousands_is_cut(site: Site) -> None:
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        whole = tree.addresses(broker, [f"{number:04}" for number in range(5000)])
    assert len(whole["children"]) == 500
    assert whole["children"][-1]["name"] == "0499"
    assert whole["more"] == 4500


def test_a_queue_is_published_to_browsed_and_purged(site: Site) -> None:
    admin = site.visitor()
    admin.does(
        "publish", queue="orders", body='{"coffee": 1}', key="eu.de",
        properties={"table": 7, "urgent": True}, priority=4, ttl=600,
    )  # fmt: skip
    admin.does("publish", queue="orders", body=base64.b64encode(b"\xff\0").decode(),
               encoding="base64", properties={"table": 8})  # fmt: skip
    viewer = site.visitor("viewer")
    rows = viewer.reads("/api/browse", queue="orders")["messages"]
    assert [row["excerpt"] for row in rows] == ['{"coffee": 1}', "�\\x00"]
    assert rows[0]["key"] == "eu.de"
    found = viewer.reads("/api/browse", queue="orders", selector="table = 8")["messages"]
    assert [row["position"] for row in found] == [rows[1]["position"]]
    after = viewer.reads("/api/browse", queue="orders", after=rows[0]["position"], count=1)
    assert [row["position"] for row in after["messages"]] == [rows[1]["position"]]
    whole = viewer.reads("/api/message", queue="orders", position=rows[0]["position"])
    assert whole["properties"] == {"table": 7, "urgent": True}
    assert base64.b64decode(whole["body"]) == b'{"coffee": 1}'
    assert whole["expires_at"] is not None
    told = viewer.reads("/api/queue", name="orders")
    assert (told["depth"], told["taken"]) == (2, 0)
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        message = broker.queue("orders").get(timeout=PATIENCE_SECONDS)
        assert viewer.reads("/api/queue", name="orders")["taken"] == 1
        rows = viewer.reads("/api/browse", queue="orders")["messages"]
        whole = viewer.reads("/api/message", queue="orders", position=rows[0]["position"])
        (name,) = [each.name for each in broker.participants() if each.id == broker.participant]
        by = (broker.participant, f"{name} ({broker.participant})")
        assert [(row["taken_by"], row["holder"]) for row in (*rows, whole)] == [
            by, (None, None), by
        ]  # fmt: skip
        message.give_back()
    assert told["settings"]["when_full"] == {"value": "block", "source": "default"}
    assert site.shell.bodies("orders")[0] == '{"coffee": 1}'  # nothing was taken
    assert admin.does("purge", queue="orders") == {"messages": 2}
    assert viewer.reads("/api/queue", name="orders")["depth"] == 0


def test_messages_are_moved_and_sent_back(site: Site) -> None:
    admin = site.visitor()
    for number in range(4):
        admin.does("publish", queue="orders", body=str(number), properties={"n": number})
    assert admin.does("move", queue="orders", to="orders.dead", selector="n > 1")["messages"] == 2
    assert admin.does("move", queue="orders", to="orders.dead", count=1)["messages"] == 1
    assert site.shell.bodies("orders.dead") == ["2", "3", "0"]
    done = admin.does("retry", queue="orders.dead")
    assert done == {"messages": 0, "stayed": {"it does not say where it comes from": 3}}
    admin.does("purge", queue="orders")
    admin.does("purge", queue="orders.dead")


def test_queues_and_exchanges_are_made_bound_and_deleted(site: Site) -> None:
    admin = site.visitor()
    admin.does("declare", queue="made", durable=True)
    assert admin.reads("/api/queue", name="made")["settings"]["durable"]["value"] is True
    admin.does("declare-exchange", exchange="news", kind="topic")
    admin.does("bind", exchange="news", queue="made", key="eu.#")
    [news] = [each for each in admin.reads("/api/exchanges") if each["name"] == "news"]
    assert (news["kind"], news["bindings"][0]["key"]) == ("topic", "eu.#")
    refused = admin.post("/api/do/delete-exchange", {"exchange": "news"})
    assert (refused.status, refused.json["error"]) == (409, "InUse")
    admin.does("unbind", exchange="news", queue="made", key="eu.#")
    admin.does("delete-exchange", exchange="news")
    admin.does("delete", queue="made")
    assert admin.get("/api/queue", name="made").status == 404
    assert "console delete" in [each["verb"] for each in site.lines("audit")]


def test_settings_by_pattern(site: Site) -> None:
    admin = site.visitor()
    for wrong in ({}, {"max_deliveries": "x"}, {"colour": 1}, {"max_deliveries": 10**30}, [1]):
        answer = admin.post("/api/do/settings", {"pattern": "orders.#", "settings": wrong})
        assert answer.status == 400, answer.body
    admin.does("settings", pattern="orders.#", settings={"max_deliveries": 3})
    assert admin.reads("/api/patterns") == [
        {"pattern": "orders.#", "settings": {"max_deliveries": 3}}
    ]
    admin.does("remove-settings", pattern="orders.#")
    assert admin.reads("/api/patterns") == []


def test_settings_and_properties_may_be_lines(site: Site) -> None:
    admin = site.visitor()
    admin.does("settings", pattern="lines.#", settings="max_deliveries = 3\n\nttl=30\n")
    [found] = [each for each in admin.reads("/api/patterns") if each["pattern"] == "lines.#"]
    assert (found["settings"]["max_deliveries"], found["settings"]["ttl"]) == (3, 30)
    none = "max_deliveries=none\nttl=none\ndead_letter=none\nreplicate=none"
    admin.does("settings", pattern="lines.#", settings=none)
    [found] = [each for each in admin.reads("/api/patterns") if each["pattern"] == "lines.#"]
    assert found["settings"] == {
        "max_deliveries": None, "ttl": None, "dead_letter": None, "replicate": "none"
    }  # fmt: skip
    for wrong in ("max_deliveries 3\nttl=30", "=3"):
        given = {"pattern": "lines.#", "settings": wrong}
        refused(admin.post("/api/do/settings", given), 400, "request")
    admin.does("remove-settings", pattern="lines.#")


def test_dead_letters_go_back(site: Site) -> None:
    site.shell.does(
        "queue", "declare", "fragile", "--max-deliveries", "1", "--dead-letter", "fragile.dead"
    )
    admin = site.visitor()
    admin.does("publish", queue="fragile", body="cup")
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        broker.queue("fragile").get_nowait().reject()
    assert site.shell.bodies("fragile.dead") == ["cup"]
    assert admin.does("retry", queue="fragile.dead")["messages"] == 1
    assert site.shell.bodies("fragile") == ["cup"]
    for name in ("fragile", "fragile.dead"):
        site.shell.does("queue", "delete", name, "--yes", "--force")


def test_a_queue_is_paused_and_resumed(site: Site) -> None:
    admin = site.visitor()
    admin.does("pause", queue="orders")
    assert admin.reads("/api/queue", name="orders")["paused"]
    admin.does("resume", queue="orders")
    assert not admin.reads("/api/queue", name="orders")["paused"]
    verbs = [(each["verb"], each["user"]) for each in site.lines("audit")]
    assert ("console pause", site.visitor().reads("/api/session")["user"]) in verbs


def test_what_cannot_be_done_is_said(site: Site) -> None:
    admin = site.visitor()
    for verb, given, status in [
        ("publish", {"queue": "nowhere", "body": "x"}, 404),
        ("publish", {"body": "x"}, 400),
        ("publish", {"queue": "orders", "body": 7}, 400),
        ("publish", {"queue": "orders", "body": "!", "encoding": "base64"}, 400),
        ("publish", {"queue": "orders", "body": "x", "priority": "high"}, 400),
        ("publish", {"queue": "orders", "body": "x", "ttl": -1}, 400),
        ("publish", {"queue": "orders", "body": "x", "properties": {"a": {"b": "c" * 70000}}}, 400),
        ("move", {"queue": "orders", "to": "orders"}, 400),
        ("move", {"queue": "orders", "to": "orders.dead", "count": 0}, 400),
        ("move", {"queue": "orders", "to": "orders.dead", "selector": "colour ="}, 400),
        ("purge", {"queue": ["orders"]}, 400),
        ("drop", {"queue": "orders"}, 404),
        ("delete", {"queue": "nowhere"}, 404),
        ("declare", {"queue": "orders", "durable": "yes"}, 400),
        ("declare-exchange", {"exchange": "news", "kind": "round"}, 400),
        ("bind", {"exchange": "nowhere", "queue": "orders"}, 404),
    ]:
        answer = admin.post(f"/api/do/{verb}", given)
        assert answer.status == status, (verb, given, answer.body)
        assert answer.json["why"], answer.body
    assert admin.get("/api/browse", queue="orders", selector="colour =").status == 400
    assert admin.get("/api/queue", name="nowhere").status == 404
    refused(admin.get("/api/message", queue="orders", position=10**15), 404, "gone")
    assert site.shell.bodies("orders") == []


def test_what_a_panel_tells(site: Site) -> None:
    viewer = site.visitor("viewer")
    told = viewer.reads("/api/ha")
    assert (told["state"], told["mode"], told["policy"]) == ("live", "live", "shared-store")
    resources = told["resources"]
    assert 0 <= resources["arena_used_bytes"] < resources["arena_bytes"] == 8 << 20
    assert 0 < resources["store_free_bytes"] <= resources["store_bytes"]
    assert resources["process_bytes"] > 1 << 20
    assert 0 <= resources["up_seconds"] < 3600
    assert told["version"] == version("shmbroker")
    assert told["listens"] == [], "it has no acceptors"
    assert viewer.reads("/api/links") == []
    assert viewer.reads("/api/errors") == []
    assert "live" in [each["event"] for each in viewer.reads("/api/log")]
    assert [each["name"] for each in viewer.reads("/api/participants")] == ["broker one"]
    assert viewer.reads("/api/cluster")["told"] == {}


def test_what_doctor_finds(site: Site) -> None:
    site.shell.does("pub", "orders", "x", "--property", "colour=red")
    with shmbroker.connect(f"shm://{site.shell.vhost}") as broker:
        with pytest.raises(shmbroker.Empty):
            broker.queue("orders").select("colour = 'blue'", timeout=0)
        [found] = site.visitor("viewer").reads("/api/doctor")
    assert found["subject"] == f"queue 'orders' of vhost {site.shell.vhost!r}"
    assert found["problem"] == "1 message waits that no selector of its consumers matches"
    assert (found["severity"], found["remedy"][:16]) == ("note", "start a consumer")
    site.shell.does("queue", "purge", "orders", "--yes")


def events(visitor: Visitor, path: str) -> Iterator[tuple[str, dict[str, object]]]:
    place = urlsplit(visitor.url)
    connection = http.client.HTTPConnection(
        str(place.hostname), place.port, timeout=PATIENCE_SECONDS
    )
    connection.request("GET", path, headers={"Cookie": visitor.cookie})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    kind = ""
    try:
        while line := answer.readline().decode().rstrip("\n"):
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield kind, json.loads(line.removeprefix("data: "))
                assert answer.readline() == b"\n"
            elif line.startswith((":", "retry")):
                assert answer.readline() == b"\n"
    finally:
        connection.close()


def test_events_have_what_changes_alone(site: Site) -> None:
    admin = site.visitor()
    eventually(lambda: not any(  # what other tests have done is no change any more
        row["in_per_second"] or row["out_per_second"] for row in admin.reads("/api/queues")
    ))  # fmt: skip
    stream = events(admin, "/api/events?queues=1&queue=orders")
    seen: dict[str, list[dict[str, object]]] = {"state": [], "queues": [], "queue": []}
    kind, content = next(stream)
    while kind != "queue":
        seen[kind].append(content)
        kind, content = next(stream)
    assert seen["queues"][0]["whole"]
    assert content["depth"] == 0
    admin.does("publish", queue="orders", body="x")
    changed: dict[str, object] = {}
    for kind, content in stream:
        if kind == "queues":
            changed = content
        if kind == "queue" and content["depth"] == 1:
            break
    assert not changed["whole"]
    rows = changed["rows"]
    assert isinstance(rows, list)
    assert [row["name"] for row in rows] == ["orders"]
    admin.does("purge", queue="orders")
    admin.post("/api/logout", {})
    assert [kind for kind, _ in stream].count("nothing") == 0  # it ends with the session


def test_a_snapshot_knows_what_is_new() -> None:
    snapshot = Snapshot()
    snapshot.take({"a": {"name": "a", "depth": 1}, "b": {"name": "b", "depth": 1}})
    first = snapshot.since(0)
    assert first.is_whole
    assert len(first.rows) == 2
    snapshot.take({"a": {"name": "a", "depth": 1}, "c": {"name": "c", "depth": 0}})
    change = snapshot.since(first.number)
    assert (change.rows, change.removed) == ([{"name": "c", "depth": 0}], ["b"])
    snapshot.take(dict(snapshot.rows))
    assert snapshot.since(change.number).is_empty
    snapshot.take({"b": {"name": "b", "depth": 3}})
    assert snapshot.since(first.number).removed == ["a", "c"]
