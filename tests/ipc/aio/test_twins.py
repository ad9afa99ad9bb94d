"""The sync and the asyncio API are twins: the same verbs, arguments, defaults, documentation."""

from __future__ import annotations

import inspect
from inspect import Parameter, getattr_static, getdoc, signature
from typing import Any

import pytest

import shmbroker
import shmbroker.aio
from shmbroker.ipc import aio
from shmbroker.ipc.aio.verb import Face, described, documentation
from shmbroker.ipc.connection.broker import connect

ONLY_SYNC = {
    "repair_for": "a thread of the live broker waits in it, and nothing of asyncio does",
    "port": "a port is for compiled loops, and those do not await",
    "timeout": "of a subscription's loop: which attribute it is kept in is no interface",
}
"""Verbs and attributes that have no twin, and why.

One argument differs: move_to and copy_to refuse a timeout other than 0, because nothing rings when
a queue has room for a move.  A queue that is consumed is a Consumer, whose only verb is the loop.
"""

SPECIAL = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__iter__": "__aiter__",
    "__len__": "__len__",
    "__bool__": "__bool__",
}


def faces(of: type[Face] = Face) -> list[type[Face]]:
    return [each for below in of.__subclasses__() for each in (below, *faces(below))]


def public(of: type) -> set[str]:
    ours = [each for each in of.__mro__ if each.__module__.startswith("shmbroker")]
    return {name for each in ours for name in vars(each) if name[0] != "_"} - {"of"}


twins = pytest.mark.parametrize("face", faces(), ids=lambda face: face.__name__)


def test_every_class_of_asyncio_has_a_twin() -> None:
    assert {face.__name__ for face in faces()} == set(aio.__all__) - {"Consumer", "connect"}
    shared = {getattr(shmbroker, name) for name in aio.__all__ if name in shmbroker.__all__}
    assert shared - {shmbroker.connect} <= {face.of for face in faces()}


@twins
def test_both_have_the_same_verbs(face: type[Face]) -> None:
    assert public(face.of) - public(face) <= set(ONLY_SYNC)
    for name in public(face) - public(face.of):  # set by __init__ there, without documentation
        assert isinstance(getattr_static(face, name), property), name
        assert getdoc(getattr_static(face, name)) is None, name
    for there, here in SPECIAL.items():
        if hasattr(face.of, there):
            assert hasattr(face, here), here


@twins
def test_with_the_same_arguments_defaults_and_hints(face: type[Face]) -> None:
    for name in public(face) & public(face.of):
        there, here = getattr_static(face.of, name), getattr_static(face, name)
        if inspect.isfunction(here):
            assert signature(here) == signature(there), name
            assert_takes(here, signature(there))


def assert_takes(verb: Any, told: inspect.Signature) -> None:
    """What it says of itself is what it does: the arguments that its own code names."""
    del verb.__signature__
    try:
        own = signature(verb).parameters
    finally:
        verb.__signature__ = told
    for name, each in list(own.items())[1:]:
        if each.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL):
            wanted = told.parameters[name]
            assert (each.kind, each.default, each.annotation) == (
                wanted.kind,
                wanted.default,
                wanted.annotation,
            ), (verb, name)


@twins
def test_with_the_same_documentation(face: type[Face]) -> None:
    assert face.__doc__ is not None
    assert face.__doc__ == documentation(face.of)
    for name in public(face) & public(face.of):
        there, here = getattr_static(face.of, name), getattr_static(face, name)
        if isinstance(there, property) or inspect.isfunction(there):
            assert here.__doc__ == documentation(there), name


def test_connect_is_a_twin_too() -> None:
    assert signature(aio.connect) == signature(connect)
    assert aio.connect.__doc__ == connect.__doc__
    assert signature(shmbroker.aio.connect) == signature(shmbroker.connect)
    assert shmbroker.aio.connect.__doc__ == shmbroker.connect.__doc__


def test_a_body_that_differs_is_refused_when_it_is_imported() -> None:
    def verb(self: object, body: bytes, *, timeout: float | None = None) -> None:
        """Do it `with` care."""

    async def other(self: object, body: bytes, *, patience: float | None) -> None: ...

    async def same(self: object, body: bytes, *, timeout: float | None) -> None: ...

    with pytest.raises(TypeError, match=r"patience.*timeout"):
        described(other, verb)
    assert described(same, verb).__doc__ == "Do it `async with` care."
    assert same.__kwdefaults__ == {"timeout": None}
