"""What becomes of a call when its link, or its session, is lost."""

from __future__ import annotations

from enum import Enum
from typing import Final

from shmbroker.netbridge.remote.body import told
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.producing import Producing
from shmbroker.netbridge.wire.words import Verb


class Loss(Enum):
    REATTACHED = "the session is there still"
    REMADE = "the session was made again"
    ELSEWHERE = "the session was made again, at another node"
    GIVEN_UP = "nothing is made again: the deadline has passed, or the program decides itself"


class Fate(Enum):
    GOES_ON = "it is answered as if nothing had been"
    AGAIN = "it is said, or said again"
    ASKED = "whether it has happened is asked"
    FAILED = "it certainly had no effect"
    UNKNOWN = "nobody knows"
    ROLLED_BACK = "its transaction is gone"
    REVOKED = "its delivery is gone"


def fate(verb: Verb, was_sent: bool, loss: Loss) -> Fate:
    if loss is Loss.REATTACHED:
        return Fate.GOES_ON if was_sent else Fate.AGAIN
    remade = loss is not Loss.GIVEN_UP
    if was_sent and loss is Loss.ELSEWHERE and verb in BY_PLACE:
        return Fate.UNKNOWN
    if was_sent:
        return WHEN_SENT[verb][0 if remade else 1]
    if remade and verb in GONE_WITH_ITS_SESSION:
        return GONE_WITH_ITS_SESSION[verb]
    return Fate.AGAIN if remade else Fate.FAILED


def given_up(call: Call) -> Fate:
    return fate(call.verb, call.was_sent or call.repeated, Loss.GIVEN_UP)


def remade_at(node: bytes, call: Call) -> Fate:
    """The session is made again at this node."""
    loss = Loss.REMADE if call.node in (b"", node) else Loss.ELSEWHERE
    return fate(call.verb, call.was_sent or call.repeated, loss)


def may_be_done(call: Call, node: bytes, producer: Producing | None) -> bool:
    """Although this node refuses it: it was said before, and either to another node or to a
    producer that could not be made again, so nobody has looked at its number."""
    if not call.repeated or call.is_cancelled or given_up(call) is not Fate.UNKNOWN:
        return False
    if call.verb is Verb.PUBLISH and (producer is None or not producer.is_open):
        return True
    is_elsewhere = call.node != node
    return is_elsewhere and not (call.verb is Verb.DECLARE and "opens" in told(call.body))


GONE_WITH_ITS_SESSION: Final = {
    Verb.COMMIT: Fate.ROLLED_BACK,
    Verb.ACK: Fate.REVOKED,
    Verb.GIVE_BACK: Fate.REVOKED,
    Verb.REJECT: Fate.REVOKED,
}
"""Of calls that were not sent: deliveries of the next session have numbers of their own."""

BY_PLACE: Final = frozenset({Verb.ACK, Verb.REJECT})
"""Said again, they name places in a queue: at another node other messages have them."""

_CHANGE: Final = (Fate.AGAIN, Fate.UNKNOWN)
_LOOK: Final = (Fate.AGAIN, Fate.FAILED)

WHEN_SENT: Final[dict[Verb, tuple[Fate, Fate]]] = {
    Verb.PUBLISH: _CHANGE,
    Verb.PUBLISH_BEHIND: _CHANGE,
    Verb.DECIDED: _CHANGE,
    Verb.SCHEDULE: _CHANGE,
    Verb.REQUEST: (Fate.UNKNOWN, Fate.UNKNOWN),
    Verb.REPLY: _CHANGE,  # who has asked drops a second reply
    Verb.GET: _LOOK,  # what was taken and has not come is given back with the session
    Verb.ACK: _CHANGE,
    Verb.GIVE_BACK: _CHANGE,
    Verb.REJECT: _CHANGE,
    Verb.BROWSE: _LOOK,
    Verb.COMMIT: (Fate.ASKED, Fate.UNKNOWN),
    Verb.PRODUCER: _LOOK,
    Verb.CONSUMER: _LOOK,
    Verb.TEMPORARY_QUEUE: _LOOK,
    Verb.LEAVE: _LOOK,
    Verb.DECLARE: _CHANGE,
    Verb.BIND: _CHANGE,
    Verb.UNBIND: _CHANGE,
    Verb.DELETE: _CHANGE,
    Verb.SETTINGS: _CHANGE,
    Verb.OPERATE: _CHANGE,
    Verb.CANCEL_SCHEDULED: _CHANGE,
    Verb.TRANSACTIONS: _LOOK,
    Verb.ORDER: _CHANGE,
    Verb.LOOK: _LOOK,
    Verb.END: _LOOK,
}
"""Of a call that was sent and is not answered: if the session is made again, and if not."""
