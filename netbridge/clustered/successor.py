"""The questions of a node that leaves, and the answers of the one that is to have all that it has.

At the one that leaves a thread asks and waits; all else is of the network thread, and making queues
of the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count

from shmbroker.ipc.connection.broker import Broker
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.codec import WHY_BYTES_MAX, encode
from shmbroker.netbridge.cluster.said import (
    Announcement,
    Answers,
    Holds,
    Leaving,
    Makes,
    Offers,
    Replaces,
)
from shmbroker.netbridge.clustered.looking import Looked, Looking
from shmbroker.netbridge.clustered.rows import made
from shmbroker.netbridge.clustered.setup import Setup
from shmbroker.netbridge.wire.frame import Talk


class Successor:
    def __init__(
        self, setup: Setup, worker: Worker, broker: Callable[[], Broker | None],
        holds: Callable[[bool], None], replaces: Callable[[Replaces, Callable[[str], None]], None],
        looking: Looking, looked: Callable[[Looked | Exception | None], None],
    ) -> None:  # fmt: skip
        """`broker`: the connection to our vhost, through which messages of others come; `holds`:
        programs that come wait, or do so no more; `replaces`: it has left, and why others cannot be
        told is answered; `looked`: at what was made here, and exchanges are to lead to it."""
        self._setup, self._worker, self._broker = setup, worker, broker
        self._holds, self._replaces = holds, replaces
        self._looking, self._looked = looking, looked
        self._held_for: set[bytes] = set()
        """Processes of nodes that leave, and for which programs wait."""
        self._lost: set[bytes] = set()
        """Those that were lost meanwhile: programs came before they had told all."""
        self.is_leaving = False
        """This node leaves itself."""
        self._numbers = count(1)
        self._asked: dict[int, tuple[End, Future[Answers]]] = {}

    def reload(self, setup: Setup) -> None:
        self._setup = setup

    def heard(self, end: End, at: Announcement | None, what: Leaving) -> None:
        """`at`: who is at the other end; it may say the next over another link."""
        process = b"" if at is None else at.incarnation
        match what:
            case Offers():
                self.answer(end, what.number, self._why_not(what))
            case Makes():
                broker = self._broker()
                if broker is None or self.is_leaving:
                    self.answer(end, what.number, "it is live no more")
                elif process in self._lost:
                    self.answer(end, what.number, "all links to it were lost, and programs go on")
                else:
                    work = partial(made, broker, what.rows)
                    self._worker.do(work, partial(self._made, end, what.number))
            case Holds() if not process:
                self.answer(end, what.number, "it is not known yet who asks")
            case Holds():
                answer = partial(self.answer, end, what.number, "")
                self._lost.discard(process)
                if what.is_held:
                    self._held_for.add(process)
                    self._holds(True)
                    answer()
                else:
                    self._release(process, answer)
            case Replaces():
                # who hears that it has left knows by then what is bound here
                answer = partial(self.answer, end, what.number)
                self.looks(partial(self._replaces, what, answer))
            case Answers():
                asked = self._asked.get(what.number)
                if asked is not None and asked[0] is end:
                    del self._asked[what.number]
                    asked[1].set_result(what)

    def _release(self, process: bytes, then: Callable[[], None] = lambda: None) -> None:
        """Programs go on when what they publish to exchanges goes to the queues that were made."""

        self._held_for.discard(process)

        def released() -> None:
            if not self._held_for:
                self._holds(False)
            then()

        self.looks(released)

    def looks(self, then: Callable[[], None]) -> None:
        """At what is there by now; and what follows from it is done.  From any thread."""

        def looked(found: Looked | Exception | None) -> None:
            self._looked(found)
            self._worker.do(lambda: None, lambda _: then())

        self._worker.do(self._looking.look, looked)

    def _made(self, end: End, number: int, why: str | Exception) -> None:
        if isinstance(why, Exception):
            self.answer(end, number, "it has failed there")
            raise why
        self.answer(end, number, why)

    def _why_not(self, offers: Offers) -> str:
        ours = self._setup
        if self.is_leaving or self._broker() is None:
            return "it leaves itself, or is not live yet"
        if offers.group and offers.group != ours.group_name:
            said = f"in group {ours.group_name!r}" if ours.group_name else "in no group"
            return f"it is {said}"
        return ""

    def answer(self, end: End, number: int, why: str) -> None:
        short = why.encode()[:WHY_BYTES_MAX].decode(errors="ignore")
        end.say(Talk(encode(Answers(number, short, self._setup.programs))))

    # --- who leaves ---------------------------------------------------------------------------

    def ask(self, end: End, word: Callable[[int], Leaving]) -> Future[Answers]:
        """`word`: with this number."""
        number, answer = next(self._numbers), Future[Answers]()
        self._asked[number] = end, answer
        end.say(Talk(encode(word(number))))
        return answer

    def answered(self, answer: Future[Answers] | None) -> Answers:
        """Not in the network thread: it waits."""
        if answer is None:
            return Answers(0, "there is no link to it", "")
        patience = self._setup.cluster.call_timeout
        try:
            return answer.result(patience)
        except TimeoutError:
            return Answers(0, f"no answer in {patience:g} s (call-timeout)", "")

    def gone(self, end: End, process: bytes) -> None:
        """Nobody answers over it any more.  `process`: it was the last link to this one."""
        if process in self._held_for:
            self._lost.add(process)
            self._release(process)
        for number, (asked, answer) in list(self._asked.items()):
            if asked is end:
                del self._asked[number]
                answer.set_result(Answers(number, "the link to it was lost", ""))
