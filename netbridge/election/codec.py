"""What members and voters say to each other (the body of a frame `Vote`), and ledgers, to bytes and
back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Copy,
    FromMember,
    FromVoter,
    Grant,
    Listed,
    Question,
    Release,
    Renew,
    Renewed,
    Stale,
    Step,
    Verdict,
)
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    Choice,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.frame import COUNT_MAX, ID_BYTES, Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import (
    ARRAY_MAX,
    COUNT,
    Made,
    Many,
    Pair,
    Perhaps,
    Vocabulary,
)

COPIES_MAX: Final = ARRAY_MAX
BOOT_BYTES_MAX: Final = 64
LEASE_MS_MAX: Final = 24 * 3600 * 1000
ASKER_BYTES_MAX: Final = 2 * NAME_BYTES_MAX
"""Of a ballot: a member, and the life of its process."""
NODE: Final = Octets(ID_BYTES, ID_BYTES)
EPOCH: Final = Number(1, COUNT_MAX)
MEMBER: Final = Text(NAME_BYTES_MAX, 1)
BOOT: Final = Text(BOOT_BYTES_MAX)
BALLOT: Final = Made(Ballot, COUNT, Text(ASKER_BYTES_MAX, 1))
COPY: Final = Made(Copy, MEMBER, BOOT)
GRANT: Final = Made(Grant, EPOCH, MEMBER, Many(COPY, COPIES_MAX))
LISTED: Final = Made(Listed, GRANT, COUNT)
ACCEPTED: Final = Perhaps(Pair(BALLOT, GRANT))
LEASE: Final = Number(0, LEASE_MS_MAX)
LEDGER: Final = Made(Ledger, Perhaps(GRANT), COUNT, Perhaps(Pair(EPOCH, BALLOT)), ACCEPTED, LEASE)
STEP: Final = Choice(Step)

VOTES: Final = Vocabulary(
    "a vote",
    (Question, Made(Question, NODE, STEP, COUNT, MEMBER, GRANT, BOOT, Perhaps(BALLOT), Flag(),
                    Flag(), Perhaps(LISTED))),
    (Answer, Made(Answer, NODE, STEP, COUNT, Choice(Verdict), Text(REASON_BYTES_MAX),
                  Perhaps(BALLOT), ACCEPTED, Perhaps(LISTED))),
    (Renew, Made(Renew, NODE, GRANT, COUNT, COUNT, LEASE)),
    (Renewed, Made(Renewed, NODE, EPOCH, COUNT, COUNT)),
    (Release, Made(Release, NODE, EPOCH)),
    (Stale, Made(Stale, NODE, EPOCH, GRANT, Flag())),
)  # fmt: skip
OF_MEMBERS: Final = (Question, Renew, Release)
OF_VOTERS: Final = (Answer, Renewed, Stale)


def encode(what: FromMember | FromVoter) -> bytes:
    return VOTES.encode(what)


def from_member(body: Body) -> FromMember:
    """Malformed, and no other error, says what is wrong."""
    said: FromMember = VOTES.said_by("a member", OF_MEMBERS, body)
    if isinstance(said, Question) and (said.ballot is None) != (said.step is Step.WOULD):
        has = "no" if said.ballot is None else "a"
        raise Malformed(f"question: {has} ballot, and its step is {said.step.value}")
    return said


def from_voter(body: Body) -> FromVoter:
    said: FromVoter = VOTES.said_by("a voter", OF_VOTERS, body)
    return said


def text_of(ledger: Ledger) -> str:
    """For an engine, and for people who look into it."""
    LEDGER.write(ledger)
    return json.dumps(asdict(ledger))


def ledger_of(text: str) -> Ledger:
    """Malformed if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a ledger that is not JSON: {error}") from None
    ledger: Ledger = LEDGER.read(value)
    return ledger
