"""The vote of a live: its ledgers, and the witness that keeps them while it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.witness.witness import Ledgers, Witness

Tell = Callable[[Mapping[str, Any]], None]


class Voting:
    """Of the worker, but for `witness`."""

    def __init__(
        self,
        thread: NetworkThread,
        tell: Tell,
        cannot: Callable[[str], None],
        begun: Callable[[Witness], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`cannot`: told why it does not vote yet.  Both of the network thread: `begun`, and
        `failed`, if its ledgers cannot be written, when a witness would end."""
        self._thread, self._tell = thread, tell
        self._cannot, self._begun, self._failed = cannot, begun, failed
        self.witness: Witness | None = None
        """Of the network thread; None: it does not vote."""
        self._ledgers: Callable[[], Ledgers] | None = None
        self._made: Witness | None = None
        self._kept: Ledgers | None = None

    def wants(self, ledgers: Callable[[], Ledgers]) -> None:
        """`ledgers`: where its votes are kept."""
        self._ledgers = ledgers

    def begin(self) -> bool:
        """False: the ledgers are somebody else's, who may be just ending."""
        if self._ledgers is None or self._made is not None:
            return True
        try:
            self._kept = self._ledgers()
        except Error as error:
            self._cannot(str(error))
            return False
        made = Witness(self._thread, self._kept, tell=self._tell, failed=self._no_more)
        self._made = made
        self._thread.ask(lambda: self._now(made))
        return True

    def end(self) -> None:
        """Nobody is answered any more; `close` behind the ends that ask."""
        self.witness = self._ledgers = None

    def close(self) -> None:
        made, self._made = self._made, None
        kept, self._kept = self._kept, None
        if made is not None:
            made.close()
        if kept is not None:
            kept.close()

    # --- of the network thread ----------------------------------------------------------------

    def _now(self, witness: Witness) -> None:
        self.witness = witness
        self._begun(witness)

    def _no_more(self, error: Exception) -> None:
        self.witness = None
        self._failed(error)
