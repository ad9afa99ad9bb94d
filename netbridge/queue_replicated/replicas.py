"""All queue replicas of a broker: those that are there, those that are to begin, their links."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import ConnectionClosed, Error, InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import sync_folder, write_whole
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import detach, detached, followed_by
from shmbroker.ipc.ring.look import looking
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.plan.plans import drafts
from shmbroker.netbridge.plan.text import parse, single
from shmbroker.netbridge.queue_replica.source import unpacked
from shmbroker.netbridge.queue_replica.told import Chain
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.queue_replicated.following import Followed, Following
from shmbroker.netbridge.queue_replicated.saving import Saving, is_there

REPLICAS: Final = "replicas"
"""The file in run/ with what `ha replicas` shows."""
SAVED: Final = "saved"
"""The folder with what was in queues before they followed, or of an original made again."""
SAVED_NAME_BYTES: Final = 200
"""Of a file there: a queue may have a name as long as that of a file may be."""
CONFIRM_NS: Final = 10_000_000_000
"""So long a queue that is detached is waited for until that is on disk."""

Dial = Callable[[Following, str], Dialled]


def address(plan: str) -> str:
    """As it is kept, and connected to.  InvalidArgument: it is no broker, or several."""
    if "(" not in plan:
        return str(single(plan))
    if len(drafts(parse(plan))) != 1:
        raise InvalidArgument(f"{plan!r} stands for several brokers: a queue follows one")
    return plan


def _refuse_scheduled(queue: Queue) -> None:
    if queue.scheduled():
        raise InvalidArgument(
            f"queue {queue.name!r} has scheduled messages, which would be lost: wait until "
            "they are due, or shmbroker queue scheduled --cancel"
        )


class QueueReplicas:
    """What the owner's thread calls, and what is of the network thread."""

    def __init__(
        self,
        thread: NetworkThread,
        broker: Broker,
        folder: Path,
        dial: Dial,
        tell: Callable[[Mapping[str, Any]], None],
        feedings: Feedings,
        *,
        is_of_node: bool,
    ) -> None:
        """`is_of_node`: of a replicated node."""
        self._feedings, self._is_of_node = feedings, is_of_node
        self._thread, self._broker, self._folder = thread, broker, folder
        self._dial, self._tell = dial, tell
        self._followings: dict[str, Following] = {}
        self._unread: dict[str, str] = {}
        """Queues that are replicas of something that we cannot read."""

    # --- in the owner's thread ----------------------------------------------------------------

    def begin(self) -> None:
        """Those that were replicas before go on."""
        self._thread.ask(self._load)
        self._dial_all()

    def follow(self, name: str, plan: str, settings: Mapping[str, Any] | None) -> Future[None]:
        """`settings`: of a queue that is not there yet.  What comes of it is in the answer."""
        known = address(plan)
        begun = self._thread.ask(lambda: self._follow(name, known, settings))
        self._dial_all()
        return begun

    def abandon(self, name: str, begun: Future[None]) -> None:
        """It has not begun in time: all who wait for it are told."""
        self._thread.ask(lambda: self._abandon(name, begun))

    def detach(self, name: str) -> None:
        """If it is durable, it stays detached whatever dies.  Unconfirmed: that is not sure."""
        number = self._thread.ask(lambda: self._detach(name))
        if number:
            detached(self._broker, number, CONFIRM_NS)

    def show(self) -> list[dict[str, object]]:
        """As `ha replicas` prints it."""
        return self._thread.ask(self._show)

    def _dial_all(self) -> None:
        for plan, each in list(self._followings.items()):
            if each.link is None:
                each.link = self._dial(each, plan)

    def close(self) -> None:
        links = [each.link for each in self._followings.values() if each.link is not None]
        for link in links:
            link.close()
        with suppress(ConnectionClosed):
            self._thread.ask(self.end)

    # --- of the thread ------------------------------------------------------------------------

    @property
    def due(self) -> float:
        return min((each.due for each in self._followings.values()), default=float("inf"))

    def woken(self, now: float) -> None:
        for each in list(self._followings.values()):
            each.woken(now)

    def end(self) -> None:
        if self in self._thread.members:
            self._thread.members.remove(self)
        self._feedings.chain_of = lambda _: ()
        for each in self._followings.values():
            each.close()
        self._followings.clear()

    def _chain(self, name: str) -> Chain:
        known = self._where(name)
        return () if known is None else known.members[name].machine.chain

    def _load(self) -> None:
        self._feedings.chain_of = self._chain
        self._thread.members.append(self)
        for entry in self._broker._catalog.queues():
            try:
                self._go_on(self._broker.queue(entry.name))
            except NotFound:
                """It was deleted since."""
            except Error as error:
                self._tell({"event": "queue replica", "level": "error", "queue": entry.name,
                            "what": "whether it follows another queue cannot be read",
                            "reason": str(error)})  # fmt: skip
        self._show()

    def _go_on(self, queue: Queue) -> None:
        """If it is a replica."""
        found = followed_by(queue)
        if not found:
            return
        source = unpacked(found)
        if source is None:
            self._unread[queue.name] = "it follows something that this version cannot read"
        else:
            self._following(source.plan).go_on(queue, source.identity)

    def _following(self, plan: str) -> Following:
        found = self._followings.get(plan)
        if found is None:
            found = Following(
                plan, self._broker, self._tell, self._changed, self._save, self._feedings,
                is_of_node=self._is_of_node,
            )  # fmt: skip
            self._followings[plan] = found
        return found

    def _where(self, name: str) -> Following | None:
        return next((each for each in self._followings.values() if name in each.members), None)

    def _follow(self, name: str, plan: str, settings: Mapping[str, Any] | None) -> Future[None]:
        self._check(name, is_new=settings is not None)
        self._forget_deleted()
        known = self._where(name)
        if known is not None:
            if known.plan != plan:
                raise InvalidArgument(
                    f"queue {name!r} follows {known.plan}: shmbroker ha detach {name} first"
                )
            return known.members[name].begun
        return self._following(plan).add(name, settings).begun

    def _forget_deleted(self) -> None:
        for each in list(self._followings.values()):
            each.forget_deleted()

    def _check(self, name: str, *, is_new: bool) -> None:
        is_there = name in self._broker._catalog.queue_names().values()
        if is_new and is_there:
            raise InvalidArgument(
                f"queue {name!r} exists: make it follow by shmbroker ha replicate"
            )
        if not is_new and not is_there:
            raise NotFound(
                f"there is no queue {name!r} here: shmbroker queue declare --start-replica makes it"
            )

    def _abandon(self, name: str, begun: Future[None]) -> None:
        known = self._where(name)
        if known is None or begun.done():
            return
        link = known.link
        state = f"{link.state}: {link.why}" if link is not None else "not reached"
        known.abandon(name, f"queue {name!r} does not begin to follow: {known.plan} is {state}")
        self._changed()

    def _detach(self, name: str) -> int:
        self._forget_deleted()
        known = self._where(name)
        if known is not None:
            number = known.detach(name)
            self._changed()
        elif name in self._unread:
            number = detach(self._broker.queue(name))
            del self._unread[name]
        else:
            raise InvalidArgument(f"queue {name!r} follows nothing: shmbroker ha replicas")
        self._show()
        return number

    def _changed(self) -> None:
        self._show()
        self._thread.call(self._leave_those_without)

    def _leave_those_without(self) -> None:
        """Nobody follows them any more."""
        for plan, each in list(self._followings.items()):
            if not each.members:
                del self._followings[plan]
                each.close()
                if each.link is not None:
                    each.link.stop()

    def _save(self, queue: Queue, replace: Callable[[], None]) -> str:
        """As lines that `shmbroker queue import` takes; no file is left if it is empty."""
        _refuse_scheduled(queue)
        folder = self._folder / SAVED
        safe = "".join(each if each.isalnum() or each in "._-" else "_" for each in queue.name)
        begins = safe.encode()[:SAVED_NAME_BYTES].decode(errors="ignore")
        path = folder / f"{begins}.{time.time_ns()}.jsonl"
        try:
            folder.mkdir(exist_ok=True)
            with looking(queue), path.open("x") as file:
                saving = Saving(queue, file)
                saving.write()
                sync_folder(folder)
                sync_folder(self._folder)
                _refuse_scheduled(queue)
                replace()
                self._save_rest(saving, path)
        except (Error, OSError) as error:
            if not is_there(queue):  # what was in it is in the file alone
                raise InvalidArgument(f"{error}: what was in it is in {path}") from None
            with suppress(OSError):
                path.unlink()
            if isinstance(error, Error):
                raise
            raise InvalidArgument(
                f"what is in queue {queue.name!r} cannot be saved in {folder}: {error.strerror}: "
                f"make room, or shmbroker queue purge {queue.name}"
            ) from None
        if saving.count:
            return str(path)
        path.unlink()
        return ""

    def _save_rest(self, saving: Saving, path: Path) -> None:
        """What was published until the queue was replaced."""
        try:
            saving.write()
        except (Error, OSError) as error:
            self._tell({"event": "queue replica", "level": "error", "detail": str(path),
                        "what": "what was published while a queue began to follow is not saved",
                        "reason": str(error)})  # fmt: skip

    # --- what people see ----------------------------------------------------------------------

    def _show(self) -> list[dict[str, object]]:
        rows = [
            self._row(following, each)
            for following in self._followings.values()
            for each in following.members.values()
        ]
        rows += [{"queue": name, "of": "", "state": "failed", "reason": why}
                 for name, why in self._unread.items()]  # fmt: skip
        with suppress(OSError):  # what it says is no reason to end
            write_whole(self._folder / RUN / REPLICAS, {"replicas": rows})
        return rows

    def _row(self, following: Following, each: Followed) -> dict[str, object]:
        row: dict[str, object] = {
            "queue": each.machine.queue,
            "of": following.plan,
            "state": each.machine.state.value,
            "reason": each.machine.why,
            "since": each.since,
            "lag-messages": 0,
            "position": 0,
            "link-bytes": following.bytes,
            "saved": each.saved,
        }
        with suppress(Error):
            stands = following.copies.stands(each.machine.number)
            row |= {"lag-messages": stands.staged, "position": stands.tail}
        return row
