"""Addresses of a member, bound in a thread of their own while they are taken by others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.netbridge.replicated import talks as module
from shmbroker.netbridge.replicated.talks import Talks


def test_a_link_that_ends_as_an_address_is_bound_does_not_have_it_bound_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is our own port then: it would be tried for ever, and no key be changed any more."""
    begun: list[str] = []
    made: Any = Talks.__new__(Talks)
    address = SimpleNamespace(uri="tcp://one:1", key=None)

    class Unbound(list[Any]):
        def remove(self, each: Any) -> None:
            made._look_at_keys()
            super().remove(each)
            made._look_at_keys()

    def thread(**_: object) -> Any:
        return SimpleNamespace(start=lambda: begun.append("binds"))

    monkeypatch.setattr(module, "Listener", lambda *_, **__: "listener")
    monkeypatch.setattr(module, "threading", SimpleNamespace(Thread=thread))
    made._thread = made._credentials = made._ours = made._times = made._tell = None
    made._by_end, made._listeners, made._listens = {}, [], (address,)
    made._unbound = Unbound([address])
    assert made.listen()
    assert made._listeners == [(address, "listener")]
    assert begun == []
