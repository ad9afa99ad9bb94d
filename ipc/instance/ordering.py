"""Orders to a broker that runs: a file and a signal, and its answer in another file, in run/.

order.lock   held by whoever gives an order, until it is answered
order        JSON: an id, and what is wanted
answer       JSON: the same id, and what came of it
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error, Untrusted
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.leaving import Left
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.moving import Parts
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.ipc.latency.latency import Counts

ORDER: Final = "order"
ANSWER: Final = "answer"
SIGNAL: Final = signal.SIGUSR1
SHOWN_SECONDS: Final = 2.0
TURN_SECONDS: Final = 0.005


class Networked(Protocol):
    """The network of an instance, which knows nothing of networks."""

    drains: bool
    """Of a backup: when it becomes live it gives all away at once, and `begin` lets nobody in."""

    def begin(self, node: bytes, epoch: int) -> None:
        """It is live."""

    def waits(self, node: bytes, epoch: int) -> None:
        """It is passive, and another one of its store is live with this epoch."""

    def gives_away(self, parts: Parts) -> Left | None:
        """It is live, and being stopped: another one may be to have all that is here.

        `parts` is called when programs are to be told that it is at this address; empty: it is not
        known.  What it is called with besides remains.  None: nothing is to be moved.
        """

    def gives_back(self) -> None:
        """It is live, and gives its role back to the original of its store."""

    def end(self, *, at_once: bool) -> None:
        """It is live no more, or waits no more."""

    def order(self, given: Mapping[str, object]) -> str:
        """Carry it out; an Error says why not.  What came of it, if there is more to say."""

    def settles(self) -> None:
        """Returns when all that it was told before is carried out."""

    def counts(self) -> Mapping[str, Mapping[str, Counts]]:
        """What links have counted of queues, by their names and by kind; from any thread."""


def asked(
    folder: Path, wanted: Mapping[str, object], timeout: float, *, waits: bool = True
) -> dict[str, Any] | None:
    """The answer of a broker that runs; None if it does not answer in time.

    If somebody else gives an order now, this waits as long for its end, too; or with `waits` false
    it is None at once.
    """
    return exchanged(folder, (ORDER, ANSWER, SIGNAL), wanted, timeout, waits=waits)


def asked_to_show(
    folder: Path, noun: str, seconds: float = SHOWN_SECONDS, *, waits: bool = True
) -> bool:
    """Whether it answers; if it hangs, or is another user's, what it has shown last stays."""
    try:
        return asked(folder, {"noun": noun, "verb": "show"}, seconds, waits=waits) is not None
    except Untrusted:
        return False


def shown(folder: Path, file: str) -> dict[str, Any]:
    """What the broker has shown in this file of run/."""
    return read_whole(folder / RUN / file, trust.seen_files())


def exchanged(
    folder: Path, by: tuple[str, str, signal.Signals], wanted: Mapping[str, object], timeout: float,
    *, waits: bool = True,
) -> dict[str, Any] | None:  # fmt: skip
    """`by`: the files of what is wanted and of its answer, and the signal that tells of it.

    Untrusted: the broker is another user's, and could not read what we, or root, leave there.
    """
    question, answered_in, tells = by
    run = folder / RUN
    trust.check_folder(run)
    number = secrets.token_hex(8)
    with _alone(run, timeout if waits else 0) as is_alone:
        if not is_alone:
            return None
        ends_at = time.monotonic() + timeout
        watch = Watch(run)
        try:
            write_whole(run / question, {"id": number, **wanted})
            status.signalled(folder, tells, 0)
            place = run / answered_in
            while (answer := read_whole(place, trust.seen_files())).get("id") != number:
                if time.monotonic() >= ends_at:
                    return None
                watch.wait(ends_at - time.monotonic())
            return answer
        finally:
            watch.close()


@contextmanager
def _alone(run: Path, timeout: float) -> Iterator[bool]:
    """One order at a time: the next would overwrite its id.

    False: somebody gives one for so long, as he was stopped, say.
    """
    trust.make_folder(run)
    lock = trust.opened(run / "order.lock", os.O_RDWR | os.O_CREAT)
    try:
        yield _locked(lock, time.monotonic() + timeout)
    finally:
        os.close(lock)


def _locked(file: int, ends_at: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends_at:
                return False
            time.sleep(TURN_SECONDS)
        else:
            return True


class Answers:
    """Of a broker: what came of what it was asked last, in a file of run/.

    What it was asked before that may take longer.  Nobody waits for it any more, and it would take
    the place of the answer that somebody waits for.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._last: object = None
        self._writing = threading.Lock()

    def asked(self, question: object) -> None:
        with self._writing:
            self._last = question

    def write(self, question: object, answer: dict[str, Any]) -> None:
        with self._writing:
            if question is self._last:
                write_whole(self.place, answer)


class Orders:
    """Of a broker: each is carried out once, however many signals tell of it.

    Whoever gave an order may have given it up while nobody looked, and the next one has taken its
    place then.
    """

    def __init__(self, folder: Path, log: Log) -> None:
        self._place = folder / RUN / ORDER
        self._log = log
        self.answers = Answers(folder / RUN / ANSWER)
        self._last: object = None
        """The id."""

    def next(self) -> dict[str, Any] | None:
        """None: there is no other one than the last."""
        order = read_asked(self._place, self._log)
        if order.get("id") in (None, self._last):
            return None
        self._last = order["id"]
        self.answers.asked(order)
        return order

    def answer(self, order: Mapping[str, Any], why: str, said: str = "") -> None:
        answer = {"id": order.get("id"), "why": why, "said": said}
        self.answers.write(order, {key: each for key, each in answer.items() if each})


def read_asked(place: Path, log: Log) -> dict[str, Any]:
    """Empty if it cannot be read: what somebody has left in run/ ends no broker."""
    try:
        return read_whole(place)
    except (Error, OSError) as error:
        log.write("warning", why=told(error))
        return {}
