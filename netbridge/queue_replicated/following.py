"""The side of replicas: all queues that follow the same broker, over one link.

What comes is staged as it comes, and shown when the original says that it is whole.  All of it is
of the network thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.errors import Error, InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import Copies, declare, detach, followed_by, let_delete
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.queue_replica.action import (
    Action,
    Became,
    Begin,
    GiveUp,
    GoOn,
    LetDelete,
    Say,
    Stop,
)
from shmbroker.netbridge.queue_replica.codec import encode, from_original
from shmbroker.netbridge.queue_replica.machine import NOTHING, Replica, State
from shmbroker.netbridge.queue_replica.source import Source
from shmbroker.netbridge.queue_replica.told import (
    Chained,
    Counted,
    Follows,
    Has,
    Moment,
    OfOriginal,
    Shown,
    Unserved,
)
from shmbroker.netbridge.queue_replicated.feeding import Feedings, apart_ns
from shmbroker.netbridge.queue_replicated.saving import is_there
from shmbroker.netbridge.wire.frame import Frame, Shipment, Talk
from shmbroker.netbridge.wire.malformed import Malformed

TELL_BYTES: Final = 256 << 10
"""So many come before it is said that they are here."""
STEP_NS: Final = 1_000_000
"""By so much clocks differ before times of expiry are reckoned anew."""
LOOK_SECONDS: Final = 0.001
"""So often it is looked whether a moment is confirmed."""
REFUSED: Final = "refused"

Tell = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class Followed:
    machine: Replica
    queue: Queue | None = None
    """None: it is not a replica yet."""
    settings: Mapping[str, Any] | None = None
    """Of a queue that is to be declared when it begins."""
    begun: Future[None] = field(default_factory=Future)
    is_answered: bool = False
    """The original has said that it is followed, on this link."""
    saved: str = ""
    """The file with what was in it before."""
    later: int = 0
    since: float = field(default_factory=time.time)
    bytes: int = 0
    """Of records that have come for all of its link, since this process began."""

    def gives_up(self, why: str) -> None:
        """Whoever waits until it begins waits for nothing."""
        if not self.begun.done():
            self.begun.set_exception(InvalidArgument(why))


class Following:
    def __init__(
        self,
        plan: str,
        broker: Broker,
        tell: Tell,
        changed: Callable[[], None],
        save: Callable[[Queue, Callable[[], None]], str],
        feedings: Feedings,
        *,
        is_of_node: bool,
    ) -> None:
        """`is_of_node`: of a replicated node, whose other members have what is in the journal.
        `save`: what is in the queue goes to a file, whose name it answers, and the queue is
        replaced by what it is given; none if it is empty, an Error if it cannot.
        `feedings`: who follows these queues in turn."""
        self._feedings, self._is_of_node = feedings, is_of_node
        self.plan, self._broker, self._tell = plan, broker, tell
        self._changed, self._save = changed, save
        self.members: dict[str, Followed] = {}
        """By the names of their queues."""
        self.link: Dialled | None = None
        self.copies = Copies(broker)
        self.bytes = 0
        self._end: End | None = None
        self._parts: list[bytes] = []
        self._came = self._told = self._shown = self._told_shown = 0
        self._numbers = 0
        self._unheard: deque[Frame] = deque()
        self._is_held = False
        """A moment waits until the one before it is confirmed, and all that came behind it."""
        self._looks_at = float("inf")

    # --- its queues ---------------------------------------------------------------------------

    def add(self, name: str, settings: Mapping[str, Any] | None) -> Followed:
        """It begins when the original says where it stands."""
        made = Followed(self._machine(name), settings=settings)
        self.members[name] = made
        self._link_to(made)
        return made

    def go_on(self, queue: Queue, identity: bytes) -> None:
        """It was a replica when this broker began."""
        made = Followed(self._machine(queue.name, identity), queue)
        made.begun.set_result(None)
        self.members[queue.name] = made
        if self._next(made) is not None:  # so what it has is shown also without a link
            self._link_to(made)

    def _machine(self, name: str, identity: bytes = NOTHING) -> Replica:
        self._numbers += 1
        return Replica(self._numbers, name, identity, self._feedings.node)

    def _link_to(self, each: Followed) -> None:
        if self._end is not None and (known := self._next(each)) is not None:
            self._does(each, each.machine.linked(known))

    def abandon(self, name: str, why: str) -> None:
        """It has not begun, and is not to any more."""
        each = self.members.pop(name)
        self._does(each, each.machine.detach())
        each.gives_up(why)

    def detach(self, name: str) -> int:
        """The number to wait for, of a durable queue (`detached`), or 0."""
        each = self.members.pop(name)
        self._does(each, each.machine.detach())
        each.gives_up(f"queue {name!r} was detached before it began to follow")
        number = 0 if each.queue is None else detach(each.queue)
        self._feedings.chained(name)
        return number

    def _next(self, each: Followed) -> int | None:
        """All below this position is known here; None: the queue was deleted, and is forgotten."""
        if each.queue is None:
            return 0
        try:
            followed_by(each.queue)
            if not self.copies.has(each.machine.number):
                self.copies.add(each.queue, each.machine.number, each.later)
            return self.copies.stands(each.machine.number).next
        except NotFound:
            self._forget(each)
            return None

    def forget_deleted(self) -> None:
        """What has no original any more may be deleted, and nobody tells without a link."""
        for each in list(self.members.values()):
            if each.queue is not None and not is_there(each.queue):
                self._forget(each)

    def _forget(self, each: Followed) -> None:
        self.copies.drop(each.machine.number)
        self.members.pop(each.machine.queue, None)
        self._does(each, each.machine.detach())
        each.gives_up(f"queue {each.machine.queue!r} was deleted")
        self._changed()

    # --- of the link --------------------------------------------------------------------------

    def came(self, end: End) -> None:
        self._end = end
        self._parts.clear()
        self._forget_moment()
        self._came = self._told = self._shown = self._told_shown = 0
        for each in list(self.members.values()):
            self.copies.drop(each.machine.number)  # and is compared with the original again
            self._link_to(each)

    def gone(self, end: End) -> None:
        if end is not self._end:
            return
        self._end = None
        self._forget_moment()
        why = self.link.why if self.link is not None else ""
        for each in list(self.members.values()):
            each.is_answered = False
            self._does(each, each.machine.lost(why))

    def _forget_moment(self) -> None:
        self._unheard.clear()
        self._is_held = False
        self._looks_at = float("inf")

    def shows(self, link: Link) -> None:
        """What people see of the link has changed."""
        if link.state == REFUSED:
            for each in list(self.members.values()):
                self._does(each, each.machine.refused(link.why))

    def heard(self, end: End, frame: Frame) -> None:
        if end is not self._end or not self.members:
            return
        self._unheard.append(frame)
        self._hear(end)

    def _hear(self, end: End) -> None:
        """What has come, in its order, until a moment has to wait for the one before."""
        try:
            while self._unheard and not self._is_held:
                frame = self._unheard.popleft()
                if isinstance(frame, Shipment):
                    self._shipped(frame)
                elif isinstance(frame, Talk):
                    self._said(from_original(frame.body))
        except Error as error:  # of this link only
            end.does(end.machine.malformed(Malformed(str(error)), time.monotonic()))

    def _shipped(self, frame: Shipment) -> None:
        self._parts.append(bytes(frame.body))
        if frame.more:
            return
        records = b"".join(self._parts)
        self._parts.clear()
        self.copies.take(records)
        self._came += len(records)
        self.bytes += len(records)
        if self._came - self._told >= TELL_BYTES:
            self._tell_has()

    def _tell_has(self) -> None:
        self._told = self._came
        if self._end is not None:
            self._end.say(Talk(encode(Has(self._came))))

    def _tell_shown(self) -> None:
        self._told_shown = self._shown
        if self._end is not None:
            self._end.say(Talk(encode(Shown(self._shown))))

    def _said(self, said: OfOriginal) -> None:
        if isinstance(said, Moment):
            if said.is_whole and not self.copies.is_confirmed:
                self._is_held = True
                self._looks_at = time.monotonic() + LOOK_SECONDS
                return
            if said.is_whole:
                self._show()
            if self._came != self._told:
                self._tell_has()
            return
        each = next((m for m in self.members.values() if m.machine.number == said.number), None)
        if each is None:
            return
        if isinstance(said, Follows):
            each.is_answered = True
            if (known := self._next(each)) is not None:
                self._does(each, each.machine.follows(said, known, time.monotonic()))
                self._feedings.chained(each.machine.queue)
        elif isinstance(said, Chained):
            self._does(each, each.machine.chained(said.chain, time.monotonic()))
            self._feedings.chained(each.machine.queue)
        elif isinstance(said, Counted):
            if each.is_answered:
                self._does(each, each.machine.counted())
        elif isinstance(said, Unserved):
            each.is_answered = False
            self._does(each, each.machine.unserved(said, time.monotonic()))

    def _show(self) -> None:
        """Whoever waits for it is told when what is durable of it is on disk."""
        try:
            is_good, why = self.copies.show(), ""
        except Error as error:
            is_good, why = False, str(error)
        self._shown += 1
        self._feedings.shown()
        for each in list(self.members.values()):
            if each.queue is None or not each.is_answered:
                continue
            wrong = "" if is_good else why or self._why(each)
            if not is_good and self._is_stale(each):
                each.is_answered = False
                self._does(each, each.machine.stale())
            elif wrong:
                each.is_answered = False
                self._does(each, each.machine.fails(wrong, time.monotonic()))
        self._look(time.monotonic())

    def _look(self, now: float) -> None:
        """Whether the last moment is confirmed; then the next one may be shown."""
        self._looks_at = float("inf")
        if not self.copies.is_confirmed:
            self._looks_at = now + LOOK_SECONDS
            return
        if self._shown != self._told_shown:
            self._tell_shown()
        if self._is_held and self._end is not None:
            self._is_held = False
            self._show()
            if self._came != self._told:
                self._tell_has()
            self._hear(self._end)

    def _is_stale(self, each: Followed) -> bool:
        try:
            return self.copies.stands(each.machine.number).is_stale
        except NotFound:
            return False

    def _why(self, each: Followed) -> str:
        try:
            return self.copies.stands(each.machine.number).why
        except NotFound:
            return ""

    # --- time ---------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        return min([self._looks_at, *(each.machine.due for each in self.members.values())])

    def woken(self, now: float) -> None:
        if self._looks_at <= now:
            self._look(now)
        for each in list(self.members.values()):
            if each.machine.due <= now and (known := self._next(each)) is not None:
                self._does(each, each.machine.tick(known, now))

    # --- what is done -------------------------------------------------------------------------

    def _does(self, each: Followed, actions: Iterable[Action]) -> None:
        for action in list(actions):
            match action:
                case Say(what):
                    if self._end is not None:
                        self._end.say(Talk(encode(what)))
                case Begin():
                    self._begin(each, action)
                case GoOn(theirs):
                    self._reckon(each, theirs)
                case LetDelete(is_deletable):
                    if each.queue is not None:
                        let_delete(each.queue, deletable=is_deletable)
                case GiveUp(why):
                    self._give_up(each, why)
                case Stop():
                    self.copies.drop(each.machine.number)
                case Became(state, why):
                    each.since = time.time()
                    self._log(each, state, why)
                    self._changed()

    def _log(self, each: Followed, state: str, why: str) -> None:
        levels = {
            State.FAILED.value: "error",
            State.REFUSED.value: "error",
            State.DISCONNECTED.value: "warning",
            State.SOURCE_DELETED.value: "warning",
        }
        self._tell({"event": "queue replica", "level": levels.get(state, "info"),
                    "queue": each.machine.queue, "of": self.plan, "state": state,
                    "reason": why})  # fmt: skip

    def _begin(self, each: Followed, action: Begin) -> None:
        name = each.machine.queue
        try:
            source = Source(self.plan, action.identity).packed()
            replace = partial(declare, self._broker, name, action.position, source)
            self.copies.drop(each.machine.number)
            if each.settings is not None:
                self._declare_anew(each, {"durable": action.is_durable, **each.settings}, replace)
            elif action.saves:
                queue = each.queue or self._broker.queue(name)
                self._check(queue)
                self._saved(each, queue, replace)
            else:
                replace()
            each.queue = self._broker.queue(name)
            each.later = action.apart_ns - apart_ns()
            self.copies.add(each.queue, each.machine.number, each.later)
        except (Error, ValueError) as error:
            if each.begun.done():
                self._does(each, each.machine.not_begun(str(error), time.monotonic()))
            else:
                self._does(each, each.machine.detach())
                self._give_up(each, str(error))
            return
        if not each.begun.done():
            self._changed()  # whoever is told looks at once, at where it is saved
            each.begun.set_result(None)

    def _declare_anew(
        self, each: Followed, settings: Mapping[str, Any], replace: Callable[[], None]
    ) -> None:
        """InvalidArgument: it cannot be made here, and is not, or somebody else was faster."""
        name = each.machine.queue
        if name in self._broker._catalog.queue_names().values():
            raise InvalidArgument(
                f"queue {name!r} exists by now: make it follow by shmbroker ha replicate"
            )
        made = self._broker.declare_queue(name, **settings)
        if made.published:
            raise InvalidArgument(f"queue {name!r} was made by a program just now")
        try:
            self._check(made)
            replace()
        except Error:
            with suppress(Error):  # somebody has it open
                self._broker.delete_queue(name)
            raise
        each.settings = None

    def _check(self, queue: Queue) -> None:
        """InvalidArgument: whoever takes over would not have it."""
        settings = queue.explain()
        if self._is_of_node and (
            not settings["durable"].value or settings["replicate"].value != "all"
        ):
            raise InvalidArgument(
                f"queue {queue.name!r} is of a replicated node, and a member that takes over would "
                "not have it: only a durable queue with replicate 'all' can follow another one here"
            )

    def _saved(self, each: Followed, queue: Queue, replace: Callable[[], None]) -> None:
        each.saved = self._save(queue, replace) or each.saved
        if each.saved:
            self._tell({"event": "queue replica", "level": "warning", "queue": each.machine.queue,
                        "of": self.plan, "what": "it follows a queue that is another one than "
                        "before: what it had is saved", "detail": each.saved})  # fmt: skip

    def _reckon(self, each: Followed, theirs: int) -> None:
        later = theirs - apart_ns()
        if each.queue is not None and abs(later - each.later) > STEP_NS:
            each.later = later
            self.copies.add(each.queue, each.machine.number, later)

    def _give_up(self, each: Followed, why: str) -> None:
        self.members.pop(each.machine.queue, None)
        each.gives_up(why)
        self._changed()

    def close(self) -> None:
        for each in self.members.values():
            each.gives_up("the broker stops")
        self.copies.close()
