"""Reading the configuration of a broker that runs again: all of it is good, or nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.reloading import Reloaded
from shmbroker.netbridge.config.config import Network, layers, load, option_of
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.security.credential import Credentials


class Reloader:
    """Knows what the broker runs with."""

    def __init__(
        self,
        folder: Path,
        flags: Mapping[str, object],
        taken: Callable[[Network, Credentials], None] = lambda network, credentials: None,
    ) -> None:
        """`taken`: is told the new network and its credentials."""
        self._folder = folder
        self._taken = taken
        self._flags = dict(flags)
        self._values = layers(folder, self._flags).values

    def __call__(self, running: Config) -> Reloaded:
        """An error leaves everything as it is."""
        new = layers(self._folder, self._flags).values
        config, network = load(self._folder, self._flags)
        found, _ = credentials(network)
        keys = sorted({*new, *self._values})
        changed = [key for key in keys if new.get(key) != self._values.get(key)]
        applied = [key for key in changed if (of := option_of(key)) and of.is_reloaded]
        ignored = [key for key in changed if key not in applied]
        # an ignored key stays what it is, and is named again by the next reload
        for key in applied:
            if key in new:
                self._values[key] = new[key]
            else:
                self._values.pop(key, None)
        self._taken(network, found)
        return Reloaded(running.with_reloaded(config), tuple(applied), tuple(ignored))
