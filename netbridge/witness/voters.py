"""What a member has of its witnesses: a link to each of them, made again whenever it is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.codec import encode, from_voter
from shmbroker.netbridge.election.question import FromMember
from shmbroker.netbridge.election.threshold import of_witnesses
from shmbroker.netbridge.election.voters import Hears
from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.security.credential import Credential, KeyPair
from shmbroker.netbridge.wire.frame import Frame, Vote
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Role

Tell = Callable[[Mapping[str, Any]], None]

PLAN: Final = "failover:({})?initial-reconnect-delay=50ms&max-reconnect-delay=1s"
REFUSED_RETRY_SECONDS: Final = 5.0
"""A witness that refuses may be one that is being set up."""
GOODBYE_SECONDS: Final = 1.0
"""For a witness to hear that the member is done; one that hangs finds out by itself."""


class Witnesses:
    """`election.voters.Voters`; begin and close it outside of the network thread."""

    def __init__(
        self,
        thread: NetworkThread,
        uris: tuple[Single, ...],
        credential: Credential,
        ours: Identity,
        *,
        times: LinkTimes | None = None,
        pair: KeyPair | None = None,
        tell: Tell = lambda _: None,
    ) -> None:
        """`ours`: by its name the witnesses know this member, whatever node it is of."""
        self.electorate = Electorate(tuple(each.peer for each in uris), of_witnesses(len(uris)))
        self._uris = uris
        self._thread = thread
        # A witness learns node and epoch from what is said; other nodes may have members of this
        # name, and a link by an epoch would end with it.
        self._ours = replace(ours, node=ours.incarnation, epoch=0)
        self._credential, self._times, self._pair, self._tell = credential, times, pair, tell
        self._links: dict[str, _WitnessLink] = {}

    def begin(self, hears: Hears) -> None:
        for uri in self._uris:
            self._links[uri.peer] = _WitnessLink(
                uri.peer, hears, self._thread, f"witness {self._ours.name}"[:255],
                PLAN.format(uri), self._credential, self._ours, (), times=self._times,
                refused_retry=REFUSED_RETRY_SECONDS, tell=self._tell, pair=self._pair,
            )  # fmt: skip

    def ask(self, voter: str, what: FromMember) -> None:
        self._links[voter].say(Vote(encode(what)))

    def close(self) -> None:
        """In good order: for a live that is a release."""
        for each in self._links.values():
            each.stop()
        ends_at = time.monotonic() + GOODBYE_SECONDS
        for each in self._links.values():
            each.ended_at.wait(max(0.0, ends_at - time.monotonic()))
            self._thread.ask(each.end)


class _WitnessLink(Link):
    def __init__(self, voter: str, hears: Hears, *given: Any, **named: Any) -> None:
        self._voter, self._hears = voter, hears
        self._attached: End | None = None
        super().__init__(*given, role=Role.WITNESS, **named)

    def say(self, frame: Frame) -> None:
        if self._attached is not None:
            self._attached.say(frame)

    def became(self, end: End, state: State) -> None:
        super().became(end, state)
        if state is State.UP:
            self._attached = end
            self._hears.voter_up(self._voter)

    def heard(self, end: End, frame: Frame) -> None:
        if end is self._attached:
            assert isinstance(frame, Vote)
            try:
                what = from_voter(frame.body)
            except Malformed as error:
                end.does(end.machine.malformed(error, time.monotonic()))
            else:
                self._hears.voter_said(self._voter, what)

    def ended(self, end: End, how: Ending) -> None:
        was_attached = end is self._attached
        if was_attached:
            self._attached = None
            self._hears.voter_down(self._voter)
        super().ended(end, how)
