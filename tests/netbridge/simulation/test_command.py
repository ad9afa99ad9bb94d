"""The command that runs seeds: how far it got, also when it is interrupted."""

from __future__ import annotations

import re

import pytest

from shmbroker.netbridge.simulation import __main__ as simulation
from shmbroker.netbridge.simulation.run import Outcome
from shmbroker.netbridge.simulation.shrink import WORLDS


@pytest.fixture(autouse=True)
def signals_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation.signal, "signal", lambda *_: None)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["simulation", "run", *words])
    return simulation.main()


def test_it_says_how_many_seeds_and_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--seeds=2", "--first=7") == 0
    told = capsys.readouterr().out
    found = re.fullmatch(r"2 seeds from 7 on, ([\d,]+) steps in \d+ s: nothing is wrong\n", told)
    assert found is not None, told
    assert int(found[1].replace(",", "")) > 100


def test_who_interrupts_it_is_told_with_which_seed_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def simulate(seed: int) -> Outcome:
        if seed == 9:
            raise KeyboardInterrupt
        return Outcome(seed, (), "", 1, 10)

    for world in WORLDS.values():
        monkeypatch.setattr(world, "simulate", simulate)
    assert run(monkeypatch, "--seeds=0", "--minutes=1", "--first=7") == 130
    told = capsys.readouterr().out
    assert told.startswith(f"2 seeds from 7 on, {2 * 10 * len(WORLDS)} steps")
    assert told.endswith("it was interrupted and goes on with FIRST=9\n")


def test_what_is_wrong_is_told_and_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if a later seed was run before."""

    def simulate(seed: int) -> Outcome:
        return Outcome(seed, (), "a message is lost" if seed in (9, 10) else "", 1, 10)

    for world in WORLDS.values():
        monkeypatch.setattr(world, "simulate", simulate)
    monkeypatch.setattr(simulation, "explained", lambda outcome, _: f"seed {outcome.seed}: lost")
    assert run(monkeypatch, "--seeds=50", "--first=7", "--processes=3") == 1
    assert capsys.readouterr().out == "seed 9: lost\n"
