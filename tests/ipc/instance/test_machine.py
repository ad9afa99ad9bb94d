"""Instances that share a store, as their machines: at most one is live, and in the end one is.

The simulated store has what the real one has: two locks, each with those who wait for it, and a
record.  Everything else, and when, is up to a seed: `python -m pytest -k "seed[17]"` repeats one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from shmbroker.ipc.instance.lock.record import HANDED_OVER, LIVE, SCALED_DOWN, STOPPED, Record
from shmbroker.ipc.instance.machine import Action, Machine, Options, State

HOLDING = (State.PROMOTING, State.RESTORING, State.LIVE, State.HANDING_OVER)


def after(*steps: object) -> list[Action]:
    """The actions of the last step."""
    done: list[Action] = []
    for step in steps:
        done = list(step)  # type: ignore[call-overload]
    return done


def test_the_original_is_live_at_once_if_nobody_is() -> None:
    machine = Machine(Options("live"))
    assert after(machine.start()) == [Action.TRY_LIVE]
    assert after(machine.tried(True, Record())) == [Action.GO_LIVE]
    assert after(machine.went_live()) == []
    assert machine.state == State.LIVE


def test_a_backup_rests_until_somebody_was_live() -> None:
    machine = Machine(Options("backup"))
    assert after(machine.start()) == [Action.WAIT_ANNOUNCED]
    assert after(machine.announced(Record())) == [Action.PREPARE]
    assert after(machine.recorded(Record(1, STOPPED))) == []
    assert after(machine.recorded(Record(2, LIVE))) == [Action.WAIT_LIVE]
    assert after(machine.recorded(Record(2, LIVE))) == [], "it waits already"


def test_a_backup_whose_live_was_stopped_lets_the_lock_go() -> None:
    machine = Machine(Options("backup"))
    after(machine.start(), machine.announced(Record(1, LIVE)))
    assert after(machine.locked(Record(1, STOPPED))) == [Action.RELEASE_LIVE]
    assert machine.state == State.PASSIVE
    assert after(machine.recorded(Record(2, LIVE))) == [Action.WAIT_LIVE]


@pytest.mark.parametrize(("failover", "word"), [
    (False, Action.SAY_STOPPED), (True, Action.SAY_HANDED_OVER),
])  # fmt: skip
def test_stopping_says_whether_another_shall_take_over(failover: bool, word: Action) -> None:
    machine = Machine(Options("live", failover_on_shutdown=failover))
    after(machine.start(), machine.tried(True, Record()), machine.went_live())
    assert after(machine.stop()) == [Action.HAND_OVER]
    assert machine.state == State.HANDING_OVER
    assert after(machine.handed_over()) == [word, Action.RELEASE_LIVE, Action.END]
    assert machine.state == State.STOPPED


def draining() -> Machine:
    """A backup that has taken over, and lets nobody in."""
    machine = Machine(Options("backup", failover_on_shutdown=True))
    after(machine.start(), machine.announced(Record(1, LIVE)), machine.locked(Record(1, LIVE)))
    assert after(machine.went_live(drains=True)) == [
        Action.RELEASE_ANNOUNCED, Action.HAND_OVER,
    ]  # fmt: skip
    assert machine.state == State.HANDING_OVER
    return machine


def test_a_backup_that_has_drained_waits_until_somebody_is_live_again() -> None:
    machine = draining()
    assert after(machine.handed_over(is_drained=True)) == [
        Action.SAY_STOPPED, Action.RELEASE_LIVE, Action.WAIT_ANNOUNCED,
    ]  # fmt: skip
    assert machine.state == State.PASSIVE
    assert after(machine.announced(Record(2, SCALED_DOWN))) == [Action.PREPARE]
    assert after(machine.recorded(Record(3, LIVE))) == [Action.WAIT_LIVE]


def test_a_backup_that_could_not_drain_lets_another_one_try() -> None:
    machine = draining()
    assert after(machine.handed_over(is_drained=False)) == [
        Action.SAY_HANDED_OVER, Action.RELEASE_LIVE, Action.WAIT_ANNOUNCED,
    ]  # fmt: skip
    assert after(machine.announced(Record(2, HANDED_OVER))) == [Action.PREPARE, Action.WAIT_LIVE]


def test_a_backup_that_is_stopped_while_it_drains_ends_behind_it() -> None:
    machine = draining()
    assert after(machine.stop()) == []
    assert after(machine.handed_over(is_drained=True)) == [
        Action.SAY_STOPPED, Action.RELEASE_LIVE, Action.END,
    ]  # fmt: skip


def test_the_original_drains_nothing() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()))
    assert after(machine.went_live(drains=True)) == []


def test_stopping_twice_does_not_wait_for_what_is_being_written() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()), machine.went_live(), machine.stop())
    assert after(machine.stop()) == [Action.SAY_STOPPED, Action.END]


def test_a_stop_while_restoring_is_for_afterwards() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()))
    assert after(machine.stop()) == []
    assert after(machine.went_live()) == [Action.HAND_OVER]


def test_failback() -> None:
    acting = Machine(Options("backup"))
    after(acting.start(), acting.announced(Record(1, LIVE)), acting.locked(Record(1, LIVE)))
    assert after(acting.went_live()) == [Action.RELEASE_ANNOUNCED]
    original = Machine(Options("live"))
    assert after(original.start(), original.tried(False, Record(2, LIVE))) == [
        Action.WAIT_ANNOUNCED
    ]
    asked = after(original.announced(Record(2, LIVE)))
    assert asked == [Action.PREPARE, Action.ASK_FAILBACK, Action.WAIT_LIVE]
    assert after(original.recorded(Record(2, LIVE))) == [], "it asks once"
    assert after(acting.failback_asked()) == [Action.HAND_OVER]
    assert after(acting.handed_over()) == [
        Action.SAY_HANDED_OVER, Action.RELEASE_LIVE, Action.WAIT_ANNOUNCED,
    ]  # fmt: skip
    assert acting.state == State.PASSIVE
    assert after(original.locked(Record(2, HANDED_OVER))) == [Action.GO_LIVE]


def test_an_original_that_is_announced_anew_asks_anew() -> None:
    """With its lease ran out what it had asked for: whoever asks is announced."""
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(False, Record(2, LIVE)))
    after(machine.announced(Record(2, LIVE)))
    assert after(machine.unannounced()) == [Action.WAIT_ANNOUNCED]
    assert after(machine.announced(Record(2, LIVE))) == [Action.PREPARE, Action.ASK_FAILBACK]


def test_who_does_not_restart_ends_after_a_failback() -> None:
    machine = Machine(Options("backup", restart_backup=False))
    after(machine.start(), machine.announced(Record(1, LIVE)), machine.locked(Record(1, LIVE)))
    after(machine.went_live(), machine.failback_asked())
    assert after(machine.handed_over())[-1] == Action.END


@pytest.mark.parametrize(("role", "allow"), [("backup", False), ("live", True)])
def test_no_failback(role: str, allow: bool) -> None:
    """From a backup that does not allow it, and from one that is itself an original."""
    machine = Machine(Options(role, allow_failback=allow))
    after(machine.start(), machine.announced(Record(1, LIVE)), machine.locked(Record(1, LIVE)))
    after(machine.went_live())
    assert after(machine.failback_asked()) == []
    assert machine.state == State.LIVE


def test_an_original_that_does_not_want_it_does_not_ask() -> None:
    machine = Machine(Options("live", allow_failback=False))
    after(machine.start(), machine.tried(False, Record(2, LIVE)))
    assert after(machine.announced(Record(2, LIVE))) == [Action.PREPARE, Action.WAIT_LIVE]


def test_a_veto_holds_for_the_live_that_it_was_about() -> None:
    machine = Machine(Options("backup", has_command=True))
    after(machine.start(), machine.announced(Record(4, LIVE)))
    assert after(machine.locked(Record(4, LIVE))) == [Action.ASK_COMMAND]
    assert after(machine.answered(False, Record(4, LIVE))) == [
        Action.RELEASE_LIVE, Action.RELEASE_ANNOUNCED,
    ]  # fmt: skip
    assert machine.state == State.PASSIVE
    assert after(machine.recorded(Record(4, LIVE))) == [], "another one is to be announced"
    assert after(machine.recorded(Record(5, LIVE))) == [Action.WAIT_ANNOUNCED]
    assert after(machine.recorded(Record(5, LIVE))) == [], "it waits already"
    assert after(machine.announced(Record(5, LIVE))) == [Action.PREPARE, Action.WAIT_LIVE]


def test_an_original_does_not_queue_behind_a_backup_that_rests() -> None:
    """The backup has the lock for a moment only, to see that it is not wanted."""
    machine = Machine(Options("live"))
    assert after(machine.start(), machine.tried(False, Record(1, STOPPED))) == [Action.WAIT_LIVE]
    assert after(machine.locked(Record(1, STOPPED))) == [Action.GO_LIVE]


def test_an_original_asks_no_command() -> None:
    machine = Machine(Options("live", has_command=True))
    after(
        machine.start(), machine.tried(False, Record(2, LIVE)), machine.announced(Record(2, LIVE))
    )
    assert after(machine.locked(Record(2, HANDED_OVER))) == [Action.GO_LIVE]


def acting() -> Machine:
    """A backup that is live, and asked for the role."""
    machine = Machine(Options("backup"))
    after(machine.start(), machine.announced(Record(1, LIVE)), machine.locked(Record(1, LIVE)))
    after(machine.went_live())
    assert after(machine.failback_asked()) == [Action.HAND_OVER]
    return machine


def test_it_is_asked_for_its_role_once() -> None:
    assert after(acting().failback_asked()) == []


def test_who_is_stopped_in_a_failback_ends_after_it() -> None:
    machine = acting()
    assert after(machine.stop()) == []
    assert after(machine.handed_over())[-1] == Action.END


def test_a_live_whose_lease_ran_out_says_nothing_and_queues_up() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()), machine.went_live())
    assert after(machine.lost()) == [Action.HAND_OVER]
    assert after(machine.lost()) == [], "it is known"
    assert after(machine.handed_over()) == [Action.RELEASE_LIVE, Action.WAIT_ANNOUNCED]
    assert machine.state == State.PASSIVE
    after(machine.announced(Record(1, LIVE)), machine.locked(Record(1, LIVE)), machine.went_live())
    after(machine.stop())
    assert Action.SAY_STOPPED in after(machine.handed_over()), "the next time it is its own again"


def test_a_lease_that_runs_out_while_it_hands_over_ends_that_without_a_word() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()), machine.went_live(), machine.stop())
    assert after(machine.lost()) == []
    assert after(machine.handed_over()) == [Action.RELEASE_LIVE, Action.END]
    assert machine.state == State.STOPPED


def test_a_lease_that_runs_out_while_it_takes_over() -> None:
    machine = Machine(Options("live"))
    after(machine.start(), machine.tried(True, Record()))
    assert after(machine.lost()) == [Action.HAND_OVER]
    assert after(machine.handed_over()) == [Action.RELEASE_LIVE, Action.WAIT_ANNOUNCED]


def test_a_lease_that_runs_out_while_the_command_runs() -> None:
    machine = Machine(Options("backup", has_command=True))
    after(machine.start(), machine.announced(Record(1, LIVE)))
    assert after(machine.locked(Record(1, LIVE))) == [Action.ASK_COMMAND]
    assert after(machine.lost()) == [
        Action.RELEASE_LIVE, Action.RELEASE_ANNOUNCED, Action.WAIT_ANNOUNCED,
    ]  # fmt: skip
    assert machine.state == State.PASSIVE
    assert after(machine.announced(Record(2, LIVE))) == [Action.PREPARE, Action.WAIT_LIVE]


def test_who_is_announced_no_more_queues_up_again() -> None:
    machine = Machine(Options("backup"))
    after(machine.start(), machine.announced(Record(1, LIVE)))
    assert after(machine.unannounced()) == [Action.WAIT_ANNOUNCED]
    assert not machine.is_announced
    assert after(machine.unannounced()) == []
    assert after(machine.announced(Record(1, LIVE))) == [Action.PREPARE], "it waits already"
    after(machine.locked(Record(1, LIVE)))
    assert after(machine.unannounced()) == [], "it is about to be live"
    assert after(machine.went_live()) == [], "and has nothing to give back"


def test_a_stop_long_after_a_failback_hands_nothing_over() -> None:
    machine = acting()
    after(
        machine.handed_over(), machine.announced(Record(3, LIVE)), machine.locked(Record(3, LIVE))
    )
    after(machine.went_live(), machine.stop())
    assert after(machine.handed_over())[0] == Action.SAY_STOPPED


# --- several of them ------------------------------------------------------------------------------


@dataclass
class Lock:
    holder: Node | None = None
    waiting: list[Node] = field(default_factory=list)


@dataclass(eq=False)
class Node:
    machine: Machine
    inbox: list[str] = field(default_factory=list)

    @property
    def is_up(self) -> bool:
        return self.machine.state not in (State.STOPPED, State.FAILED)


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.record = Record()
        self.live, self.announced = Lock(), Lock()
        self.asked = 0
        chance = self.random.random
        roles = ["live"] + ["backup"] * self.random.randint(1, 3)
        self.options = [
            Options(role, chance() < 0.5, chance() < 0.8, chance() < 0.8, chance() < 0.3)
            for role in roles
        ]
        self.nodes = [self.started(options) for options in self.options]

    def started(self, options: Options) -> Node:
        node = Node(Machine(options))
        self.do(node, "start")
        return node

    # --- what the kernel does -------------------------------------------------------------------

    def release(self, lock: Lock, node: Node) -> None:
        if lock.holder is node:
            lock.holder = None

    def forget(self, node: Node) -> None:
        """A process has ended, however."""
        for lock in (self.live, self.announced):
            self.release(lock, node)
            if node in lock.waiting:
                lock.waiting.remove(node)
        node.inbox.clear()

    def grant(self) -> bool:
        """Somebody who waits for a lock that is free gets it."""
        for lock, event in ((self.live, "locked"), (self.announced, "announced")):
            if lock.holder is None and lock.waiting:
                node = self.random.choice(lock.waiting)
                lock.waiting.remove(node)
                lock.holder = node
                node.inbox.append(event)
                return True
        return False

    def write(self, record: Record, node: Node) -> None:
        assert self.live.holder is node, "only who is live writes the record"
        self.record = record
        for each in self.nodes:
            each.inbox.append("recorded")

    # --- what a process does ---------------------------------------------------------------------

    def do(self, node: Node, event: str) -> None:
        machine = node.machine
        if not node.is_up:
            return
        if event == "start":
            actions = machine.start()
        elif event == "tried":
            got = self.live.holder is None
            if got:
                self.live.holder = node
            actions = machine.tried(got, self.record)
        elif event in ("announced", "locked", "recorded"):
            actions = getattr(machine, event)(self.record)
        elif event == "answered":
            if machine.state != State.PROMOTING:
                return
            actions = machine.answered(self.random.random() < 0.5, self.record)
        else:
            actions = getattr(machine, event)()
        for action in list(actions):
            self.act(node, action)

    def act(self, node: Node, action: Action) -> None:
        if action == Action.TRY_LIVE:
            node.inbox.append("tried")
        elif action == Action.WAIT_ANNOUNCED:
            assert node not in self.announced.waiting
            self.announced.waiting.append(node)
        elif action == Action.WAIT_LIVE:
            assert node not in self.live.waiting
            self.live.waiting.append(node)
        elif action == Action.RELEASE_ANNOUNCED:
            self.release(self.announced, node)
        elif action == Action.RELEASE_LIVE:
            self.release(self.live, node)
        elif action == Action.ASK_FAILBACK:
            self.asked = self.record.epoch
            for each in self.nodes:
                each.inbox.append("recorded")
        elif action == Action.ASK_COMMAND:
            node.inbox.append("answered")
        elif action == Action.GO_LIVE:
            self.write(Record(self.record.epoch + 1, LIVE), node)
            node.inbox.append("went_live")
        elif action == Action.HAND_OVER:
            node.inbox.append("handed_over")
        elif action in (Action.SAY_STOPPED, Action.SAY_HANDED_OVER):
            state = STOPPED if action == Action.SAY_STOPPED else HANDED_OVER
            self.write(replace(self.record, state=state), node)
        elif action == Action.END:
            self.forget(node)

    def look_for_failback(self) -> None:
        for node in self.nodes:
            is_live = node.machine.state == State.LIVE
            if is_live and self.asked == self.record.epoch and self.announced.holder:
                self.do(node, "failback_asked")

    def step(self) -> bool:
        """Something that was about to happen does; False if there was nothing."""
        with_news = [node for node in self.nodes if node.inbox]
        if with_news and (self.random.random() < 0.7 or not self.grant()):
            node = self.random.choice(with_news)
            self.do(node, node.inbox.pop(0))
        elif not with_news and not self.grant():
            return False
        self.look_for_failback()
        self.check()
        return True

    def check(self) -> None:
        holding = [node for node in self.nodes if node.machine.state in HOLDING]
        assert all(self.live.holder is node for node in holding)

    def disturb(self) -> None:
        index = self.random.randrange(len(self.nodes))
        node = self.nodes[index]
        what = self.random.choice(["stop", "crash", "restart", "restart"])
        if what == "stop":
            self.do(node, "stop")
        elif what == "crash" and node.is_up:
            self.forget(node)
            node.machine.state = State.FAILED
        elif what == "restart" and not node.is_up:
            self.nodes[index] = Node(Machine(self.options[index]))
            self.do(self.nodes[index], "start")

    def settle(self) -> None:
        for _ in range(10_000):
            if not self.step():
                return
        raise AssertionError("it never comes to rest")


@pytest.mark.parametrize("seed", range(400))
def test_at_most_one_is_live_and_in_the_end_one_is(seed: int) -> None:
    simulation = Simulation(seed)
    for _ in range(simulation.random.randint(1, 40)):
        for _ in range(simulation.random.randint(0, 12)):
            simulation.step()
        simulation.disturb()
        simulation.check()
    simulation.settle()
    up = [node for node in simulation.nodes if node.is_up]
    is_live = any(node.machine.state == State.LIVE for node in up)
    has_original = any(node.machine.is_original for node in up)
    may_act = [
        node for node in up
        if simulation.record.calls_for_backup
        and simulation.record.epoch > node.machine.refused_epoch
    ]  # fmt: skip
    if has_original or may_act:
        assert is_live, [node.machine.state for node in simulation.nodes]
    for node in up:
        if node.machine.state != State.LIVE:
            assert node.machine.state == State.PASSIVE
