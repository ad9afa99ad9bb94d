"""Programs of scenarios in which a message is set aside (core/put_aside.py)."""

from __future__ import annotations

from shmbroker.core import layout as at
from shmbroker.core.atomics import load
from shmbroker.core.codes import INVALID, OK
from shmbroker.core.head import head_load
from shmbroker.core.put_aside import put_aside
from shmbroker.core.tail import true_tail
from shmbroker.core.take import ack_once, look, take_once, take_seen
from shmbroker.core.word import is_aside
from tests.explore.operation import ask, tell
from tests.explore.processes import (
    ACKED,
    END,
    GAVE_BACK,
    IS_THERE_WORK,
    PRODUCER_SHIFT,
    REFUSED,
    REPAIR,
    TAKEN,
    forget,
    repair_all,
    surviving,
)
from tests.explore.ring import MESSAGE, PORT
from tests.explore.translation import program


@program
def retiring() -> int:
    """There is room now: take what is set aside, and be done with it."""
    tail = true_tail(PORT)
    for position in range(head_load(PORT), tail):
        code = look(PORT, position, MESSAGE)
        if code == OK and is_aside(load(MESSAGE + at.MESSAGE_WORD)):
            if take_seen(PORT, MESSAGE) == OK:
                tell(ACKED, position, ack_once(PORT, MESSAGE))
        forget()
    return 0


@program
def refusing(which: int, most: int) -> int:
    """Set the message of this number aside, so often at most; acknowledge the others."""
    while True:
        code = take_once(PORT, MESSAGE)
        if code == OK:
            position = load(MESSAGE + at.MESSAGE_POSITION)
            body = load(load(MESSAGE + at.MESSAGE_BODY))
            tell(TAKEN, position, body)
            if body & ((1 << PRODUCER_SHIFT) - 1) == which:
                if most == 0:
                    tell(REFUSED, INVALID)  # it is not passed over
                most -= 1
                tell(GAVE_BACK, position, put_aside(PORT, MESSAGE, 1))
            else:
                tell(ACKED, position, ack_once(PORT, MESSAGE))
            forget()
        else:
            forget()
            retiring()
            what = ask(IS_THERE_WORK, code)
            if what == END:
                return 0
            if what == REPAIR:
                repair_all()


@program
def outlasting(who: int, extra: int) -> int:
    repair_all()
    retiring()
    return surviving(who, extra)
