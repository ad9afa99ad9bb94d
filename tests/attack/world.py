"""A world: a vhost with its brokers and workers, what is done to them, and the reckoning."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shmbroker
from tests.attack import ledger
from tests.attack.instances import Instance
from tests.attack.worker import name_of

HEAL_S = 60.0
LOOK_S = 3.0  # a command of Python takes a second to start on a busy machine


class World:
    """Everything of one run, in one folder; it leaves nothing behind."""

    def __init__(self, folder: Path, store: Path, seed: int, seconds: float) -> None:
        self.random = random.Random(seed)
        self.seed, self.seconds = seed, seconds
        self.folder = folder
        self.vhost = f"attack-{uuid.uuid4().hex[:8]}"
        self.ledgers = folder / "ledgers"
        self.ledgers.mkdir()
        self.store = store
        self.instances = [
            Instance(folder / "one", self.vhost, store),
            Instance(folder / "two", self.vhost, store, "--role", "backup"),
        ]
        self.workers: dict[str, tuple[subprocess.Popen[bytes], tuple[str, ...]]] = {}
        self.forgets: list[int] = []
        self.wrong: list[str] = []
        self.done: dict[str, int] = {}
        self._names = 0
        self._said = (folder / "workers").open("ab")

    # --- what there is

    def begin(self, queues: dict[str, dict[str, object]]) -> None:
        self.instances[0].start()
        if not self.instances[0].wait("live"):
            raise RuntimeError(self.instances[0].said())
        self.instances[1].start()
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            for name, settings in queues.items():
                broker.declare_queue(name, durable=True, **settings)  # type: ignore[arg-type]

    def work(self, role: str, *queues: str) -> None:
        self._names += 1
        name = f"{role[0]}{self._names}"
        seed = str(self.random.randrange(1 << 30))
        words = [role, self.vhost, str(self.ledgers), name, seed, *queues]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.worker", *words], stderr=self._said
        )
        self.workers[name] = process, (role, *queues)

    # --- what is done to it

    def count(self, deed: str) -> None:
        self.done[deed] = self.done.get(deed, 0) + 1

    def kill_worker(self) -> None:
        name = self.random.choice(sorted(self.workers))
        process, again = self.workers.pop(name)
        process.kill()
        process.wait()
        self.work(*again)

    def live(self) -> Instance | None:
        """Who is live now, if somebody is."""
        for each in self.instances:
            if each.wait("live", timeout=LOOK_S):
                return each
        return None

    def revive(self) -> None:
        """What ended is started again, as a service manager would."""
        for each in self.instances:
            if each._process is None or each.ended is not None:
                if each.ended is not None:
                    self.wrong.append(f"{each.folder.name} ended by itself: {each.said()[-600:]}")
                    each.kill()
                each.start()

    def kill_live(self) -> None:
        live = self.live() or self.instances[0]
        live.kill()
        time.sleep(self.random.random() * 0.5)
        live.start()

    def stop_live(self) -> None:
        live = self.live()
        if live is not None:
            live.stop()
            time.sleep(self.random.random() * 0.5)
            live.start()

    def kill_both(self) -> None:
        for each in self.instances:
            each.kill()
        for each in self.instances:
            each.start()

    def freeze_live(self) -> None:
        live = self.live()
        if live is not None:
            live.freeze()
            time.sleep(0.3)
            live.thaw()

    def cold_start(self) -> None:
        """As if the machine had been started anew: no process, and nothing in /dev/shm."""
        for each in self.instances:
            each.kill()
        again = [words for _, words in self.workers.values()]
        for process, _ in self.workers.values():
            process.kill()
        for process, _ in self.workers.values():
            process.wait()
        self.workers.clear()
        if shmbroker.vhost.exists(self.vhost):  # the last cold start may not have made it yet
            shmbroker.vhost.delete(self.vhost, force=True)
        self.forgets.append(time.monotonic_ns())
        for each in self.instances:
            each.start()
        for words in again:
            self.work(*words)

    # --- the end of it

    def heal(self) -> None:
        self.revive()
        ends = time.monotonic() + HEAL_S
        while self.live() is None:
            if time.monotonic() > ends:
                said = "\n".join(each.said() for each in self.instances)
                logs = "\n".join(each.logged() for each in self.instances)
                raise RuntimeError(f"nobody is live after {HEAL_S} s: {said}\n{logs}")
            self.revive()

    def stop_workers(self, *roles: str) -> None:
        for name, (process, words) in list(self.workers.items()):
            if not roles or words[0] in roles:
                process.kill()
                process.wait()
                del self.workers[name]

    def drain(self, *queues: str) -> dict[str, list[str]]:
        """All that is still there, taken and acknowledged."""
        rest: dict[str, list[str]] = {}
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            for name in queues:
                note = ledger.Writer(self.ledgers / f"{name}.drain").note
                queue, rest[name] = broker.queue(name), []
                ends = time.monotonic() + HEAL_S
                while time.monotonic() < ends:
                    try:
                        message = queue.get(timeout=1.5)
                    except shmbroker.Empty:
                        if queue.statistics().depth == 0:
                            break
                        continue
                    which = name_of(message.body)
                    note(ledger.SEEN, which)
                    message.ack()
                    note(ledger.ACKED, which)
                    rest[name].append(which)
                else:
                    self.wrong.append(f"{name} could not be drained: {queue.statistics()}")
        return rest

    def reckon(self, ordered: tuple[str, ...] = ()) -> dict[str, object]:
        counts: dict[str, object] = {"seed": self.seed, "done": self.done}
        for name, account in ledger.read(self.ledgers).items():
            self.wrong += [f"{name}: {each}" for each in account.faults(self.forgets)]
            if name in ordered and not self.forgets:
                self.wrong += [f"{name}: {each}" for each in ledger.disorder(account)]
            counts[name] = {
                "tried": len(account.tried),
                "confirmed": len(account.confirmed),
                "seen": len(account.seen),
                "refused": len(account.refused),
            }
        counts["wrong"] = self.wrong
        return counts

    def end(self) -> None:
        self.stop_workers()
        for each in self.instances:
            each.thaw()
            each.kill()
        if shmbroker.vhost.exists(self.vhost):
            shmbroker.vhost.delete(self.vhost, force=True)
        self._said.close()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system that is soon full."""
    at = folder / "disk"
    at.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(at)], check=True
    )
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)
        shutil.rmtree(at)
