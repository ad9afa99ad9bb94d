"""Maps, and errors that are told by their names."""

from __future__ import annotations

import pytest

from shmbroker.core.codes import FULL, INVALID, OK
from shmbroker.ipc.base import errors
from shmbroker.ipc.base.errors import Error, InvalidArgument, QueueFull
from shmbroker.netbridge.remote.body import asked, named, raised, refusal, told

KINDS = [each for each in vars(errors).values() if isinstance(each, type)]
ERRORS = [each for each in KINDS if issubclass(each, Error)]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: str(kind.__name__))
def test_an_error_is_raised_as_the_class_that_it_was(kind: type[Error]) -> None:
    code, body = refusal(kind("what was wrong"))
    assert code < OK
    again = raised(code, body)
    assert type(again) is kind
    assert str(again) == "what was wrong"
    assert again.code == code


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\x01\x02\x03", asked(a=1)])
def test_an_error_of_which_nothing_is_understood_is_that_of_its_code(body: bytes) -> None:
    assert type(raised(FULL, body)) is QueueFull
    assert type(raised(-9999, body)) is Error


def test_a_name_that_is_no_error_is_none() -> None:
    _, body = refusal(type("annotations", (Error,), {})("x"))
    assert type(raised(INVALID, body)) is InvalidArgument


def test_a_map_says_what_it_was_given() -> None:
    assert told(asked(queue="q", limit=None, slots=0)) == {"queue": "q", "slots": 0}
    assert told(b"") == {}
    for garbage in (b"\xc1", b"\x01", b"\x80\x80"):
        with pytest.raises(InvalidArgument):
            told(garbage)
    with pytest.raises(InvalidArgument, match="'queue' of a command is 7, no str"):
        named({"queue": 7}, "queue")
