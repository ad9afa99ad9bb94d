"""What a program on another host declares is with the replica when it is told that it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from shmbroker import NotFound, aio
from tests.netbridge.replicated.conftest import PASSWORD, PATIENCE, Made, Node
from tests.netbridge.replicated.test_replicate import SLOW

SOON = 0.5


def made(program: Any, name: str) -> list[Coroutine[Any, Any, Any]]:
    return [
        program.declare_queue(name, durable=True),
        program.declare_exchange(f"{name}.x", "direct"),
        program.bind(f"{name}.x", name, "k"),
        program.subscription(name, exchange=f"{name}.x", key="s", durable=True),
    ]


def gone(program: Any, name: str) -> list[Coroutine[Any, Any, Any]]:
    return [
        program.unsubscribe(name, force=True),
        program.unbind(f"{name}.x", name, "k"),
        program.delete_exchange(f"{name}.x"),
        program.delete_queue(name),
    ]


async def are_told_when_the_replica_has_it(two: Node) -> None:
    async with await aio.connect(two.uri(), user="programs", password=PASSWORD) as program:
        await program.settings("sub.#", durable=True)
        await asyncio.gather(*made(program, "old"))
        two.stands_still("b")
        told: list[int] = []
        changes = [*made(program, "new"), *gone(program, "old")]
        tasks = [asyncio.create_task(each) for each in changes]
        for number, task in enumerate(tasks):
            task.add_done_callback(lambda _, number=number: told.append(number))  # type: ignore[misc]
        await asyncio.wait(tasks, timeout=SOON)
        assert told == []
        async with await aio.connect(two.uri(), user="programs", password=PASSWORD) as other:
            assert not (await other.declare_queue("memory")).is_durable
            await other.settings("new.#", ttl=60.0)  # no journal has them
            await other.queue("new")
            with pytest.raises(NotFound):
                await other.queue("old")
        assert told == []
        two.goes_on("b")
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert told == list(range(len(tasks)))


def test_what_changed_is_at_the_replica_when_that_is_told(node: Made) -> None:
    two = node(SLOW).up()
    asyncio.run(are_told_when_the_replica_has_it(two))
    two["a"].kill()
    two["b"].becomes("live")
    there = two.connected("b")
    assert {each.name for each in there.queues()} == {"new", "sub.new"}
    assert {each.name for each in there.exchanges()} == {"new.x"}
    bound = {(each.exchange, each.destination) for each in there.bindings()}
    assert bound == {("new.x", "new"), ("new.x", "sub.new")}


def test_without_a_replica_the_disk_is_enough(node: Made) -> None:
    two = node()
    two["a"].start().becomes("live")
    program = two.program()
    program.declare_queue("alone", durable=True)
    two["a"].kill()
    two["a"].start().becomes("live")
    assert program.queue("alone").is_durable
