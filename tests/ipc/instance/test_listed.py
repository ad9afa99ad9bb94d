"""The queues that a configuration lists, and its settings by pattern."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.instance import listed
from shmbroker.ipc.instance.config.config import configured
from shmbroker.ipc.instance.log import Log


def test_one_that_cannot_be_made_stops_no_other(vhost: str, tmp_path: Path) -> None:
    config = replace(
        configured(tmp_path, {"instance.vhost": vhost}), queues=("pages", "orders")
    )
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        broker.settings("pages", when_full="page")  # which needs a broker that has a store
        listed._make(config, Log(tmp_path / "log", "a"))
        assert [each.name for each in broker.queues()] == ["orders"]
    warning, made = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert "'pages'" in warning["why"]
    assert made["queue"] == "orders"


def test_settings_by_pattern_change_with_the_configuration(vhost: str, tmp_path: Path) -> None:
    config = configured(tmp_path, {"instance.vhost": vhost})
    config.store.mkdir()

    def put(**settings: Any) -> dict[str, dict[str, Any]]:
        wanted = {pattern.replace("_", "."): each for pattern, each in settings.items()}
        listed._make(replace(config, settings=wanted), Log(tmp_path / "log", "a"))
        return {each.pattern: each.settings for each in broker.patterns()}

    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        broker.settings("b", redistribution_delay=1, ttl=60)
        broker.settings("own", ttl=60)
        first = put(a_b={"redistribution_delay": 5.0}, b={"redistribution_delay": 5.0})
        assert first.pop("own") == {"ttl": 60}
        assert first == {"a.b": {"redistribution_delay": 5.0},
                         "b": {"redistribution_delay": 1, "ttl": 60}}  # fmt: skip
        second = put(a_b={"redistribution_delay": None, "replicate": "none"})
        assert second["a.b"] == {"redistribution_delay": None, "replicate": "none"}
        assert second["b"] == {"redistribution_delay": 1, "ttl": 60}, "a program has set it"
        broker.settings("a.b", redistribution_delay=3, replicate="none")
        third = put(a_b={"redistribution_delay": 9.0})
        assert third["a.b"] == {"redistribution_delay": 3}, "replicate was the configuration's"
        broker.remove_settings("a.b")
        assert put(a_b={"redistribution_delay": 9.0})["a.b"] == {"redistribution_delay": 9.0}
        assert put().keys() == {"b", "own"}


def test_settings_by_pattern_change_with_the_configuration_of_whoever_is_live_next(
    vhost: str, tmp_path: Path
) -> None:
    """Its file was changed before it took over the vhost."""
    log, store = Log(tmp_path / "log", "a"), tmp_path / "store"
    store.mkdir()
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        for name, delay in (("one", 3.0), ("two", 5.0), ("one", 7.0)):
            given = {"instance.vhost": vhost, "store.path": str(store)}
            config = configured(tmp_path / name, given)
            settings = {"orders": {"redistribution_delay": delay}}
            listed._make(replace(config, settings=settings), log)
            assert [each.settings for each in broker.patterns()] == [settings["orders"]]


def test_a_pattern_that_is_refused_keeps_no_queue_from_being_made(
    vhost: str, tmp_path: Path
) -> None:
    config = replace(
        configured(tmp_path, {"instance.vhost": vhost}), queues=("orders",),
        settings={"orders": {"confirm_replicas": 99}},
    )  # fmt: skip
    config.store.mkdir()
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        listed._make(config, Log(tmp_path / "log", "a"))
        assert [each.name for each in broker.queues()] == ["orders"]
    [warning, _] = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert "confirm_replicas" in warning["why"]


def test_a_store_that_cannot_be_written_keeps_no_queue_from_being_made(
    vhost: str, tmp_path: Path
) -> None:
    settings = {"orders": {"ttl": 60}}
    config = replace(
        configured(tmp_path, {"instance.vhost": vhost}), queues=("orders",), settings=settings
    )  # fmt: skip
    assert not config.store.exists()
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        listed._make(config, Log(tmp_path / "log", "a"))
        assert [each.name for each in broker.queues()] == ["orders"]
        assert [each.settings for each in broker.patterns()] == [settings["orders"]]
    [warning, made] = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert str(config.store) in warning["why"]
    assert made["queue"] == "orders"


def test_what_was_read_last_is_carried_out_last(
    vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever thread comes first."""
    begun: list[Callable[[], None]] = []

    def thread(target: Callable[..., None], args: tuple[Any, ...] = (), **_: Any) -> Any:
        return SimpleNamespace(start=lambda: begun.append(partial(target, *args)))

    monkeypatch.setattr(listed, "threading", SimpleNamespace(Thread=thread))
    config, log = configured(tmp_path, {"instance.vhost": vhost}), Log(tmp_path / "log", "a")
    config.store.mkdir()
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        for ttl in (60, 30):
            listed.make_in_background(replace(config, settings={"orders": {"ttl": ttl}}), log)
        for each in reversed(begun):
            each()
        assert [each.settings for each in broker.patterns()] == [{"ttl": 30}]
