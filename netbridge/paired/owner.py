"""Owns the network of a broker of a pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.config.config import Network as Wanted
from shmbroker.netbridge.paired import options
from shmbroker.netbridge.security.credential import Credentials

if TYPE_CHECKING:
    from shmbroker.netbridge.broker.network import Place
    from shmbroker.netbridge.paired.network import PairedNetwork

HA = "ha"


class PairOwner(Owner):
    def __init__(self, config: Config, wanted: Wanted, credentials: Credentials, log: Log) -> None:
        """ConfigError: it cannot be one of a pair."""
        self._found = options.checked(config, wanted)
        self._paired: PairedNetwork | None = None
        super().__init__(config, wanted, credentials, log)

    def reload(self, wanted: Wanted, credentials: Credentials) -> None:
        """ConfigError: it could not be one of a pair any more, and nothing is changed."""
        options.checked(self._config, wanted)
        super().reload(wanted, credentials)

    def order(self, given: Mapping[str, object]) -> str:
        """`ha reset`, and those of links."""
        if given.get("noun") != HA:
            return super().order(given)
        self._asked(lambda: self._of_pair(given))
        return ""

    # --- in the thread ------------------------------------------------------------------------

    def _network_of(self, place: Place, given: Given) -> PairedNetwork:
        from shmbroker.netbridge.paired.network import PairedNetwork

        self._paired = PairedNetwork(
            place, given, self._stopped, self._lines.tell, self._orders.put, self._found
        )
        return self._paired

    @property
    def uri(self) -> str:
        """Programs keep to the list that they were given: the primary first."""
        return ""

    def _end(self, at_once: bool) -> None:
        super()._end(at_once)
        self._paired = None

    def _reload(self, wanted: Wanted, credentials: Credentials) -> None:
        super()._reload(wanted, credentials)
        if self._paired is not None:
            self._paired.patience(options.checked(self._config, wanted).failover_timeout)

    def _of_pair(self, given: Mapping[str, object]) -> None:
        paired, verb = self._paired, given.get("verb")
        if paired is None:
            raise InvalidArgument("it is not live yet")
        if verb == "show":
            paired.show()
        elif verb == "reset":
            self._reset(paired, given)
        else:
            raise InvalidArgument(f"a broker of a pair does not {verb!r}")

    def _reset(self, paired: PairedNetwork, given: Mapping[str, object]) -> None:
        if why := paired.reset():
            raise InvalidArgument(why)
        self._log.write("audit", verb="reset", user=given.get("user"))
