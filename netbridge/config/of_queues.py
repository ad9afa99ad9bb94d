"""[queues."orders.#"]: settings of the queues whose names match."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from shmbroker.core.layout import CONFIRM_REPLICAS_MAX, NAME_BYTES_MAX
from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.ipc.instance.config.kind import ENDLESS, Kind, choice, count, duration
from shmbroker.ipc.instance.config.option import Option
from shmbroker.ipc.settings.setting import Filters, Replicate

QUEUES: Final = "queues"
TABLE: Final = f"{QUEUES}.NAME"


def _row(name: str, kind: Kind, help: str) -> Option:
    return Option(TABLE, name, kind, None, help, is_reloaded=True)


QUEUE_SETTINGS: Final = (
    _row("redistribution-delay", duration(is_endless=True),
         "Time without a consumer before messages go to another node of the cluster; 0s: at once."),
    _row("redistribution-filters", choice(*get_args(Filters)),
         "Whether any consumer here keeps them, or only one whose selector takes them."),
    _row("replicate", choice(*get_args(Replicate)),
         "What another member of a replicated node has when it takes over."),
    _row("confirm-replicas", count(0, CONFIRM_REPLICAS_MAX),
         "Replicas on other brokers that confirms of a durable queue wait for."),
)  # fmt: skip


def settings_of(named: Mapping[str, Mapping[str, Any]], place: Path) -> dict[str, dict[str, Any]]:
    """As `broker.settings` takes them, by pattern; what is not said is not there."""
    found: dict[str, dict[str, Any]] = {}
    for pattern, values in named.items():
        if not 0 < len(pattern.encode()) <= NAME_BYTES_MAX or "\0" in pattern:
            raise ConfigError(
                f"{place}: [{QUEUES}.{pattern!r:.80}]: a pattern has 1 to {NAME_BYTES_MAX} bytes"
            )
        said = {key.replace("-", "_"): each for key, each in values.items() if each is not None}
        if said.get("redistribution_delay") == ENDLESS:
            said["redistribution_delay"] = None
        found[pattern] = said
    return found
