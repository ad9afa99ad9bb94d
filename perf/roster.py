"""The roster: every contestant there is, found by looking into the folder ``contestants``."""

import pkgutil
from importlib import import_module

from shmbroker.perf import contestants
from shmbroker.perf.contestant import Contestant


def roster() -> dict[str, Contestant]:
    """All contestants by name, limits first; also those whose library is not installed."""
    found: list[Contestant] = []
    for module in pkgutil.iter_modules(contestants.__path__, f"{contestants.__name__}."):
        found.extend(import_module(module.name).CONTESTANTS)
    found.sort(key=lambda contestant: (not contestant.is_limit, contestant.name))
    return {contestant.name: contestant for contestant in found}
