"""A host with one process: it may stand still, be killed, lose its power, and its clock may jump.

What is asked of a host while it stands still happens when it goes on, in the order in which it was
asked.  What was asked of a process that has ended since does not happen.
"""

from __future__ import annotations

from collections import deque

from shmbroker.netbridge.simulation.world import Step, World


class Host:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.life = 1
        """Of the process: each start is another one."""
        self.is_up = True
        self.stands_until = 0.0
        self._held: deque[tuple[int, Step]] = deque()
        """What waits until it goes on, each of a life."""
        self.jumped = 0.0
        self.rate = 1.0
        """Of its clock: seconds of it in a second."""
        self.day_jumped = 0.0

    @property
    def clock(self) -> float:
        """Seconds that only rise."""
        return self.world.now * self.rate + self.jumped

    def when(self, clock: float) -> float:
        """The world's time at which its clock shows this."""
        return (clock - self.jumped) / self.rate

    @property
    def day_ms(self) -> int:
        return int((1_800_000_000 + self.world.now + self.day_jumped) * 1000)

    def at(self, time: float, step: Step) -> None:
        """For the process that runs now."""
        life = self.life

        def happens() -> None:
            if self.life != life or not self.is_up:
                return
            if self._held or self.world.now < self.stands_until:
                if not self._held:
                    self.world.at(self.stands_until, self._goes_on)
                self._held.append((life, step))
            else:
                step()

        self.world.at(time, happens)

    def _goes_on(self) -> None:
        if self._held and self.world.now < self.stands_until:  # it was stopped again meanwhile
            self.world.at(self.stands_until, self._goes_on)
            return
        while self._held:
            life, step = self._held.popleft()
            if self.life == life and self.is_up:
                step()

    def later(self, seconds: float, step: Step) -> None:
        self.at(self.world.now + seconds, step)

    def ends(self) -> None:
        self.is_up = False
        self.life += 1

    def starts(self) -> None:
        self.is_up = True
        self.stands_until = 0.0
