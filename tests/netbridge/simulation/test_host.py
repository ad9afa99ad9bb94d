"""A host that stands still: what is asked of it meanwhile happens later, in its order."""

from __future__ import annotations

from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.world import World


def asked(*times: float, stops: tuple[tuple[float, float], ...]) -> list[tuple[int, float]]:
    """Which came when; the host stands still from each of these times until another."""
    world = World(0)
    host = Host(world, "west")
    came: list[tuple[int, float]] = []

    def stop(until: float) -> None:
        host.stands_until = max(host.stands_until, until)

    for at, until in stops:
        world.at(at, lambda until=until: stop(until))  # type: ignore[misc]
    for number, time in enumerate(times):
        host.at(time, lambda number=number: came.append((number, world.now)))  # type: ignore[misc]
    world.run(10.0)
    return came


def test_what_is_asked_meanwhile_happens_when_it_goes_on() -> None:
    assert asked(0.5, 1.5, 3.0, stops=((1.0, 2.0),)) == [(0, 0.5), (1, 2.0), (2, 3.0)]


def test_one_that_is_stopped_again_keeps_the_order() -> None:
    came = asked(1.2, 1.7, 2.5, stops=((1.0, 2.0), (1.6, 3.0)))
    assert came == [(0, 3.0), (1, 3.0), (2, 3.0)]


def test_what_was_asked_of_a_process_that_has_ended_does_not_happen() -> None:
    world = World(0)
    host = Host(world, "west")
    came: list[str] = []
    host.stands_until = 2.0
    host.at(1.0, lambda: came.append("of the first"))
    world.run(1.5)
    host.ends()
    host.starts()
    host.at(1.6, lambda: came.append("of the second"))
    world.run(5.0)
    assert came == ["of the second"]
