"""A disk: writes take effect when they are synced, all that wait at once.

When the power goes, what was not synced is gone, but for some of the first writes: a torn end.
"""

from __future__ import annotations

from shmbroker.netbridge.simulation.world import Step, World

SYNC_SECONDS = 0.0005, 0.02
SLOW_SECONDS = 0.3, 0.8


class Disk:
    def __init__(self, world: World) -> None:
        self.world = world
        self.slow_until = 0.0
        self.fails_until = 0.0
        """Until then it is full, or fails: whoever writes looks before."""
        self.takes_frames = True
        """Also then: they are written, and not synced."""
        self._waiting: list[Step] = []
        self._synced: list[Step] = []
        self._life = 0

    @property
    def fails(self) -> bool:
        return self.world.now < self.fails_until

    @property
    def is_full(self) -> bool:
        return self.fails and not self.takes_frames

    def write(self, effect: Step) -> None:
        self._waiting.append(effect)
        if not self._synced:
            self._sync()

    def _sync(self) -> None:
        self._synced, self._waiting = self._waiting, []
        bounds = SLOW_SECONDS if self.world.now < self.slow_until else SYNC_SECONDS
        life = self._life
        self.world.later(self.world.between(*bounds), lambda: self._done(life))

    def _done(self, life: int) -> None:
        if life != self._life:
            return
        done, self._synced = self._synced, []
        for effect in done:
            effect()
        if self._waiting and not self._synced:
            self._sync()

    def flush(self) -> None:
        """All that was written is synced at once, and whoever wrote it is no more."""
        self._life += 1
        pending = self._synced + self._waiting
        self._synced, self._waiting = [], []
        for effect in pending:
            effect()

    def loses_power(self) -> None:
        """What survives is written, and nobody is told."""
        self._life += 1
        pending = self._synced + self._waiting
        self._synced, self._waiting = [], []
        for effect in pending[: self.world.random.randint(0, len(pending))]:
            effect()
        self._synced, self._waiting = [], []
