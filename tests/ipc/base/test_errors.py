"""Errors tell themselves by the name that users import."""

from __future__ import annotations

import pickle
import queue
import traceback

import pytest

import shmbroker
from shmbroker.core import codes
from shmbroker.ipc.base import errors


# the order of a set of classes is another one in each process
@pytest.mark.parametrize(
    "error", dict.fromkeys([*errors.ERRORS.values(), errors.Error]), ids=lambda e: e.__name__
)
def test_the_name_is_the_public_one(error: type[shmbroker.Error]) -> None:
    assert getattr(shmbroker, error.__name__) is error
    assert error.__name__ in shmbroker.__all__
    told = traceback.format_exception_only(error("why"))
    assert told == [f"shmbroker.{error.__name__}: why\n"]
    packed = pickle.dumps(error("why"))
    assert b"base" not in packed
    assert type(pickle.loads(packed)) is error


def test_every_error_is_exported_and_knows_its_code() -> None:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    for kind in (each for each in found if issubclass(each, errors.Error)):
        assert getattr(shmbroker, kind.__name__) is kind
        assert "code" in vars(kind), kind
    assert shmbroker.QueueFull("").code == codes.FULL
    assert shmbroker.SelectorError("").code == codes.INVALID
    share = errors.error_for(codes.OVER_SHARE, "queue 'q'")
    assert (type(share), share.code) == (shmbroker.QueueFull, codes.OVER_SHARE)
    assert pickle.loads(pickle.dumps(share)).code == codes.OVER_SHARE


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (shmbroker.NotFound, LookupError),
        (shmbroker.InvalidArgument, ValueError),
        (shmbroker.Empty, queue.Empty),
        (shmbroker.QueueFull, queue.Full),
        (shmbroker.NoReply, TimeoutError),
        (shmbroker.Unconfirmed, TimeoutError),
    ],
)
def test_who_catches_what_python_has_catches_ours(
    error: type[shmbroker.Error], known: type[Exception]
) -> None:
    with pytest.raises(known, match=r"^why$"):
        raise error("why")


def test_what_waits_raises_them(broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders", slots=2)
    with pytest.raises(queue.Empty) as nothing:
        orders.get(timeout=0)
    assert nothing.value.code == codes.EMPTY  # type: ignore[attr-defined]
    orders.publish_many([b"a", b"b"])
    with pytest.raises(queue.Full):
        orders.publish_nowait(b"c")
    with pytest.raises(LookupError):
        broker.queue("nowhere")
    with pytest.raises(TimeoutError):
        broker.declare_queue("asked").request(b"?", timeout=0.01)
