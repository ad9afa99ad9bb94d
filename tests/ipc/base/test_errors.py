"""Errors tell themselves by the name that users import."""

from __future__ import annotations

import pickle
import traceback

import pytest

import shmbroker
from shmbroker.ipc.base import errors


@pytest.mark.parametrize("error", {*errors.ERRORS.values(), errors.Error}, ids=lambda e: e.__name__)
def test_the_name_is_the_public_one(error: type[shmbroker.Error]) -> None:
    assert getattr(shmbroker, error.__name__) is error
    assert error.__name__ in shmbroker.__all__
    told = traceback.format_exception_only(error("why"))
    assert told == [f"shmbroker.{error.__name__}: why\n"]
    packed = pickle.dumps(error("why"))
    assert b"base" not in packed
    assert type(pickle.loads(packed)) is error
