"""[queues."orders.#"]: what is read, what is refused, and who has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError
from shmbroker.ipc.instance.creation import create
from shmbroker.netbridge.config.config import layers, load
from shmbroker.netbridge.config.explain import explained


def made(folder: Path, text: str) -> Any:
    (folder / FILE).write_text(text)
    return load(folder)[0].settings


def test_what_is_said(tmp_path: Path) -> None:
    assert made(tmp_path, """
[queues."orders.#"]
redistribution-delay = "5s"
redistribution-filters = "match"
[queues."*.eu"]
redistribution-delay = -1
replicate = "configuration"
confirm-replicas = 2
[queues.prices]
redistribution-delay = 250
""") == {
        "orders.#": {"redistribution_delay": 5.0, "redistribution_filters": "match"},
        "*.eu": {
            "redistribution_delay": None, "replicate": "configuration", "confirm_replicas": 2,
        },
        "prices": {"redistribution_delay": 0.25},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[queues."o.#"]\nredistribution-dalay = 5', "mean queues.o.#.redistribution-delay"),
        ('[queues."o.#"]\nredistribution-filters = "some"', '"ignore" or "match"'),
        ('[queues."o.#"]\nconfirm-replicas = 8', "0…7"),
        ("[queues]\nredistribution-delay = 5", "stands in"),
        ('[queues."' + "x" * 300 + '"]\nconfirm-replicas = 1', "bytes"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(tmp_path, text)
    assert why in str(refused.value)


def test_it_is_made_and_explained(tmp_path: Path) -> None:
    folder = tmp_path / "east"
    create(folder, {"queues.orders.#.redistribution-delay": "5s"})
    assert load(folder)[0].settings == {"orders.#": {"redistribution_delay": 5.0}}
    found = {each.key: each.value for each in explained(layers(folder), folder / FILE)}
    assert found["queues.orders.#.redistribution-delay"] == "5s"
