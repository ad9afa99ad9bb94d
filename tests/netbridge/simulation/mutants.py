"""The machine of a link with one guard removed: the simulation must object to each.

A snippet is the text of the real method and must occur in it exactly once.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.netbridge.link import heartbeat, inflow, machine, origin, outflow
from shmbroker.netbridge.link.credit import Allowance, Window
from tests.support import sources


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    owner: Any
    """A class, or a module."""
    function: str
    old: str
    new: str
    behind: Mutant | None = None
    """Another guard, without which this one has more to do: removed as well."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        behind = self.behind.applied() if self.behind is not None else nullcontext()
        with behind, self._applied():
            yield

    @contextmanager
    def _applied(self) -> Iterator[None]:
        if not sources.ARE_IMPORTED:
            import pytest  # takes longer than the programs that need no more of this

            pytest.skip("what is compiled has no source to be changed")
        whole = getattr(self.owner, self.function)
        is_property = isinstance(whole, property)
        plain = whole.fget if is_property else whole
        source = textwrap.dedent(inspect.getsource(plain))
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: the snippet is there {found} times, not once")
        scope: dict[str, Any] = dict(plain.__globals__)
        text = "from __future__ import annotations\n" + source.replace(self.old, self.new)
        exec(compile(text, plain.__code__.co_filename, "exec"), scope)
        broken = scope[self.function]
        users = [self.owner]
        if inspect.ismodule(self.owner):  # whoever has imported the function
            users = [
                each for each in list(sys.modules.values()) if _has(each, whole, self.function)
            ]
        for user in users:
            setattr(user, self.function, broken)
        try:
            yield
        finally:
            for user in users:
                setattr(user, self.function, whole)


def _has(user: Any, whole: Any, name: str) -> bool:
    return getattr(user, "__dict__", {}).get(name) is whole


MUTANTS: Final = (
    # --- marks and resuming
    Mutant(
        "mark-taken-for-a-confirm",
        outflow.Outflow,
        "opened",
        "min(said.confirmed, self.cursor)",
        "self.cursor",
    ),
    Mutant(
        "resumed-where-it-sent-last",
        outflow.Outflow,
        "opened",
        "max(said.mark, self.confirmed) if",
        "max(said.mark, self.confirmed, of.sent) if",
    ),
    Mutant(
        "resumed-at-its-own-confirm",
        outflow.Outflow,
        "opened",
        "max(said.mark, self.confirmed) if",
        "self.confirmed if",
    ),
    Mutant(
        "resumed-below-its-own-confirm",
        outflow.Outflow,
        "opened",
        "max(said.mark, self.confirmed) if",
        "said.mark if",
    ),
    Mutant(
        "released-when-it-is-sent",
        outflow.Outflow,
        "confirm",
        "self._confirmed(said.end,",
        "self._confirmed(self.cursor,",
    ),
    Mutant(
        "confirmed-when-it-is-appended",
        inflow.Inflow,
        "_reached",
        "self.passed if self.confirmed >= self.appended else self.confirmed",
        "self.passed",
    ),
    Mutant(
        "refused-message-passed-at-once",
        inflow.Inflow,
        "poured",
        "        self.refused = told\n        yield Reject(",
        "        self.held[0].records = self.held[0].records[told.skip :]\n        yield Reject(",
    ),
    Mutant(
        "gone-on-past-what-is-being-set-aside",
        outflow.Outflow,
        "_may_read",
        "or self.aside:",
        ":",
    ),
    Mutant(
        "set-aside-by-a-former-connection-not-waited-for",
        outflow.Outflow,
        "__init__",
        "deque(outlet.aside)",
        "deque()",
    ),
    Mutant(
        "origin-forgotten-before-all-is-released",
        outflow.Outflow,
        "is_idle",
        "self.released >= self.cursor",
        "True",
    ),
    Mutant(
        "release-of-a-former-connection-taken-for-good",
        outflow.Outflow,
        "__init__",
        "self.released = outlet.released",
        "self.released = outlet.confirmed",
    ),
    Mutant(
        "frames-not-counted",
        machine.Machine,
        "_received",
        "if number != self.received_frames:",
        "if False:",
    ),
    # --- histories
    Mutant(
        "origin-without-history",
        origin,
        "origin_of",
        "history.to_bytes(8, 'little')".replace("'", '"'),
        "bytes(8)",
    ),
    # --- credit
    Mutant(
        "credit-not-looked-at",
        Allowance,
        "is_open",
        "self.sent_messages < self.messages and self.sent_bytes < self.bytes",
        "True",
    ),
    Mutant(
        "credit-never-given-back",
        Window,
        "appended",
        "self._raise()",
        "pass",
    ),
    Mutant(
        "credit-given-for-what-was-not-appended",
        Window,
        "take",
        "    came.spend(messages, size)\n",
        "    came.spend(messages, size)\n    self.appended(messages, size)\n",
    ),
    # --- heartbeats
    Mutant(
        "silence-not-noticed",
        heartbeat.Heartbeat,
        "is_silent",
        "now >= self.silent_at",
        "False",
    ),
    Mutant(
        "no-beats",
        heartbeat.Heartbeat,
        "is_due",
        "now >= self.beat_at",
        "False",
    ),
)

SHOWN_BY: Final = {
    "mark-taken-for-a-confirm": 211,
    "resumed-where-it-sent-last": 7174,
    "resumed-at-its-own-confirm": 7194,
    "resumed-below-its-own-confirm": 7174,
    "released-when-it-is-sent": 7174,
    "confirmed-when-it-is-appended": 23,
    "refused-message-passed-at-once": 9,
    "gone-on-past-what-is-being-set-aside": 552,
    "set-aside-by-a-former-connection-not-waited-for": 241,
    "origin-forgotten-before-all-is-released": 49,
    "release-of-a-former-connection-taken-for-good": 58013,
    "frames-not-counted": 25,
    "origin-without-history": 7194,
    "credit-not-looked-at": 7174,
    "credit-never-given-back": 7174,
    "credit-given-for-what-was-not-appended": 7174,
    "silence-not-noticed": 13,
    "no-beats": 7174,
}
"""The seed that objects to each; if it does not any more, one behind it has to."""
