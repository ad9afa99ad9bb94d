"""Orders to the process of a broker that come over links, as `shmbroker ha` gives them.

An order may wait for yet another broker, and for the thread that ends sessions.  So each has a
thread of its own, for which nobody waits when sessions end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument, NotAllowed
from shmbroker.netbridge.wire.words import Role

AT_ONCE: Final = 8
"""So many orders of programs are carried out at a time."""
LOOKS: Final = "show"
"""The verb that viewers may give, too."""
USERS: Final = "users"
"""The noun of orders that only admins give; other nouns they share with whoever looks."""

CarryOut = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
"""What is shown then; an Error says why it is not done."""
Told = Callable[[Any], None]
"""In the network thread: what is shown, or the exception."""


def check(given: Mapping[str, Any], role: Role) -> None:
    """NotAllowed: a session of this role may not give that order."""
    noun, verb = given.get("noun"), given.get("verb")
    if role is Role.VIEWER and (verb != LOOKS or noun == USERS):
        raise NotAllowed(f"a viewer only looks: {verb!r} is not allowed")
    if role is Role.CLIENT and noun is not None and (verb != LOOKS or noun == USERS):
        raise NotAllowed(f"{noun}, {verb!r}: this is for an admin")


class Orders:
    """Of the network thread."""

    def __init__(
        self, call: Callable[[Callable[[], None]], None], carry_out: CarryOut | None
    ) -> None:
        """`call`: in the network thread; without `carry_out` this broker takes none."""
        self._call, self._carry_out = call, carry_out
        self._running = 0

    def do(self, given: Mapping[str, Any], told: Told) -> None:
        if self._carry_out is None:
            raise NotAllowed("this broker takes orders on its own host only")
        if self._running >= AT_ONCE:
            raise InvalidArgument(f"this broker has {AT_ONCE} orders to carry out: try again")
        self._running += 1
        run = partial(self._run, self._carry_out, given, told)
        threading.Thread(target=run, name="shmbroker-order", daemon=True).start()

    def _run(self, carry_out: CarryOut, given: Mapping[str, Any], told: Told) -> None:
        try:
            made: object = carry_out(given)
        except Exception as error:  # noqa: BLE001  # whoever has asked is told
            made = error
        self._call(partial(self._came, told, made))

    def _came(self, told: Told, made: object) -> None:
        self._running -= 1
        told(made)
