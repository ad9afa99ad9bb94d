"""Random schedules: never two that accept at once, but for the documented conflict."""

from __future__ import annotations

from random import Random

import pytest

from shmbroker.netbridge.pair.told import State
from tests.netbridge.pair.duo import BACKUP, PRIMARY, Duo

STEPS = 400


def moves(duo: Duo, random: Random) -> None:
    name = random.choice((PRIMARY, BACKUP))
    match random.randrange(12):
        case 0 if name in duo.brokers:
            duo.kill(name)
        case 1 if name in duo.brokers:
            duo.stop(name)
        case 2 | 3 if name not in duo.brokers:
            duo.start(name)
        case 4:
            duo.heal() if duo.is_cut else duo.cut()
        case 5 if name in duo.brokers:
            duo.does(name, duo.brokers[name].reset(duo.now))
        case 6 | 7 if name in duo.brokers:
            duo.ask(name)
        case 8:
            duo.wait(random.choice((0.4, 2.0, 6.0)))
        case _:
            duo.deliver(name)


@pytest.mark.parametrize("primary_wins", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_two_accept_only_after_a_client_has_met_silence(seed: int, primary_wins: bool) -> None:
    random = Random(seed)
    duo = Duo(primary_wins=primary_wins)
    for _ in range(STEPS):
        moves(duo, random)
        active = [name for name, state in duo.states.items() if state is State.ACTIVE]
        if len(active) == 2:
            assert "client asked" in [duo.reasons(name)[-1] for name in active]
    for name in (PRIMARY, BACKUP):
        if name not in duo.brokers:
            duo.start(name)
    duo.heal()
    duo.wait(10)
    states = set(duo.states.values())
    assert states == {State.ACTIVE, State.PASSIVE} or (
        states == {State.CONFLICT} and not primary_wins
    )
