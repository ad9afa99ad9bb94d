"""The registry: every peer there is, found by looking into the folder ``peers``."""

import pkgutil
from importlib import import_module

from shmbroker.perf import peers
from shmbroker.perf.harness.peer import Peer


def registry() -> dict[str, Peer]:
    """All peers by name, limits first; also those whose library is not installed."""
    found: list[Peer] = []
    for module in pkgutil.iter_modules(peers.__path__, f"{peers.__name__}."):
        found.extend(import_module(module.name).PEERS)
    found.sort(key=lambda peer: (not peer.is_limit, peer.name))
    return {peer.name: peer for peer in found}
