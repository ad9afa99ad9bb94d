"""What holds confirms back in the journal of a live besides its disk: the ends of its replicas.

They are kept as a broker keeps them (netbridge/replicated/backups.py), which is not as the machine
of its live thinks: what that says wrongly, or does not know yet, is to be seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

from shmbroker.netbridge.replicated.admission import Admission

NEVER = float("inf")


@dataclass(slots=True, eq=False)
class End:
    member: str
    stream: int
    done: int
    """The replica has all frames up to this one."""
    sent: int
    progress_at: float
    is_admitted: bool = False


class Ends:
    def __init__(self) -> None:
        self._admission = Admission()
        self._of: dict[str, End] = {}
        self._counting: list[End] = []
        """Those that confirms wait for, also if their links are lost."""

    def ship(self, member: str, stream: int, has: int, now: float) -> None:
        """`has`: the last frame of the replica."""
        self.stop(member)
        self._admission.ship(member, stream)
        self._of[member] = End(member, stream, has, has, now)

    def stop(self, member: str) -> None:
        end = self._of.pop(member, None)
        self._admission.stop(member)
        if end is not None and end in self._counting:
            self._admission.release(member, partial(self._counting.remove, end))

    def sent(self, member: str, number: int, now: float) -> None:
        end = self._of[member]
        if end.done == end.sent:
            end.progress_at = now
        end.sent = number

    def has(self, member: str, stream: int, number: int, last: int, now: float) -> bool:
        """True: confirms can wait for it from now on.

        Up to there it was sent what the files have; `last`: the last frame of the journal.
        """
        end = self._of.get(member)
        if end is None or end.stream != stream:
            return False
        if number > end.done:
            end.done, end.progress_at = number, now
        if end.is_admitted or end.done < last:
            return False
        end.is_admitted = True
        self._admission.admit(member, partial(self._count, end))
        return True

    def _count(self, end: End) -> bool:
        self._counting.append(end)
        return True

    # --- as the machine says ------------------------------------------------------------------

    def count(self, members: Iterable[str]) -> None:
        """Before a record is written that lists some of them."""
        self._admission.count(members)

    def let_go(self, counted: Collection[str]) -> None:
        self._admission.let_go(counted)

    # --- what may be confirmed ----------------------------------------------------------------

    def holds(self, members: Iterable[str]) -> bool:
        """Confirms wait for each of them."""
        return {each.member for each in self._counting}.issuperset(members)

    @property
    def replicated(self) -> int | None:
        """Everybody that confirms wait for has all frames up to this one; None: there is nobody."""
        return min((each.done for each in self._counting), default=None)

    # --- time ---------------------------------------------------------------------------------

    def deadline(self, timeout: float) -> float:
        behind = [each.progress_at for each in self._of.values() if each.done < each.sent]
        return min(behind, default=NEVER) + timeout

    def late(self, timeout: float, now: float) -> list[str]:
        """Those that have made no progress for so long."""
        return [
            each.member
            for each in self._of.values()
            if each.done < each.sent and now >= each.progress_at + timeout
        ]
