"""Reading the configuration of a broker that runs again: all of it is good, or nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.reloading import Reloaded
from shmbroker.netbridge.config.config import Network, layers, load, option_of
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.config.running import OF_POLICY, as_running
from shmbroker.netbridge.security.credential import Credentials

POLICY: Final = "ha.policy"


class Reloader:
    """Knows what the broker runs with."""

    def __init__(
        self,
        folder: Path,
        flags: Mapping[str, object],
        network: Network,
        taken: Callable[[Network, Credentials], None] = lambda network, credentials: None,
    ) -> None:
        """`network`: that it was started with.

        `taken`: is told the new one, as far as it needs no restart, and its credentials; an Error
        says why it does not take it.
        """
        self._folder = folder
        self._network = network
        self._taken = taken
        self._flags = dict(flags)
        self._values = layers(folder, self._flags).values

    def __call__(self, running: Config) -> Reloaded:
        """An error leaves everything as it is."""
        new = layers(self._folder, self._flags).values
        config, found = load(self._folder, self._flags)
        network = as_running(self._network, found)
        known, _ = credentials(network)
        keys = sorted({*new, *self._values})
        changed = [key for key in keys if new.get(key) != self._values.get(key)]
        waits = OF_POLICY if POLICY in changed else ()
        applied = [
            key
            for key in changed
            if (of := option_of(key)) and of.is_reloaded and not key.startswith(waits)
        ]
        ignored = [key for key in changed if key not in applied]
        self._taken(network, known)
        self._network = network
        # an ignored key stays what it is, and is named again by the next reload
        for key in applied:
            if key in new:
                self._values[key] = new[key]
            else:
                self._values.pop(key, None)
        return Reloaded(running.with_reloaded(config), tuple(applied), tuple(ignored))
