"""Votes and ledgers to bytes and back: what was written is read, all else is Malformed."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker.netbridge.election.codec import (
    COPIES_MAX,
    OF_MEMBERS,
    encode,
    from_member,
    from_voter,
    ledger_of,
    text_of,
)
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
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import BYTES_MAX

FUZZED = 20_000
NODE = b"N" * 16
GRANT = Grant(7, "a", (Copy("a"), Copy("b", "boot 1")))
LISTED = Listed(GRANT, 5)
BALLOT = Ballot(3, "b life")
QUESTION = Question(NODE, Step.ACCEPT, 2, "b", GRANT, "boot 1", BALLOT, True, False, LISTED)
EXAMPLES: list[FromMember | FromVoter] = [
    QUESTION,
    Answer(NODE, Step.PREPARE, 2, Verdict.NO, "it sees a", BALLOT, (BALLOT, GRANT), LISTED),
    Renew(NODE, GRANT, 4, 99, 600),
    Renewed(NODE, 7, 4, 99),
    Stale(NODE, 6, GRANT, is_decided=True),
    Release(NODE, 7),
]

leases = st.integers(0, 60_000)
counts = st.integers(0, (1 << 63) - 1)
epochs = st.integers(1, (1 << 63) - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
boots = st.text(st.characters(codec="ascii"), max_size=64)
nodes = st.binary(min_size=16, max_size=16)
ballots = st.builds(Ballot, counts, names)
copies = st.lists(st.builds(Copy, names, boots), max_size=COPIES_MAX).map(tuple)
grants = st.builds(Grant, epochs, names, copies)
listed = st.builds(Listed, grants, counts)
accepted = st.none() | st.tuples(ballots, grants)
flags = st.booleans()
steps, verdicts = st.sampled_from(list(Step)), st.sampled_from(list(Verdict))
questions = st.builds(
    Question, nodes, steps, counts, names, grants, boots, ballots, flags, flags, st.none() | listed
)
VOTES = st.one_of(
    questions.map(lambda each: each.before_any_promise() if each.step is Step.WOULD else each),
    st.builds(Answer, nodes, steps, counts, verdicts, st.text(st.characters(codec="utf-8"),
              max_size=100), st.none() | ballots, accepted, st.none() | listed),
    st.builds(Renew, nodes, grants, counts, counts, leases),
    st.builds(Renewed, nodes, epochs, counts, counts),
    st.builds(Stale, nodes, epochs, grants, flags),
    st.builds(Release, nodes, epochs),
)  # fmt: skip
LEDGERS = st.builds(
    Ledger, st.none() | grants, counts, st.none() | st.tuples(epochs, ballots), accepted, leases
)


def read(body: bytes) -> FromMember | FromVoter:
    kind = msgpack.unpackb(body)[0]
    return from_member(body) if kind in (0, 2, 4) else from_voter(body)


def error_of(body: bytes) -> str:
    """What is wrong with it for both ends, "" if one of them takes it."""
    said = []
    for each in (from_member, from_voter):
        try:
            each(body)
        except Malformed as error:
            said.append(str(error))
    return said[0] if len(said) == 2 else ""


@given(what=VOTES)
@settings(max_examples=150)
def test_what_was_written_is_read(what: Any) -> None:
    assert read(encode(what)) == what


@given(ledger=LEDGERS)
@settings(max_examples=100)
def test_a_ledger_is_a_text_and_back(ledger: Ledger) -> None:
    assert ledger_of(text_of(ledger)) == ledger


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_a_vote_or_malformed(body: bytes) -> None:
    error_of(body)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=3),
))  # fmt: skip
@settings(max_examples=60)
def test_any_messagepack_is_a_vote_or_malformed(value: Any) -> None:
    error_of(msgpack.packb(value))
    for kind in range(6):
        error_of(msgpack.packb([kind, NODE, *([value] * 4)]))


def test_damaged_votes_are_votes_or_malformed() -> None:
    random = Random(1)
    seen = set()
    for _ in range(FUZZED):
        whole = encode(random.choice(EXAMPLES))
        at = random.randrange(len(whole))
        kind = random.randrange(3)
        end = random.randrange(at, len(whole)) + 1
        if kind == 0:
            damaged = whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :]
        else:
            damaged = whole[:at] + whole[end:] if kind == 1 else whole[:end] + whole[at:]
        seen.add(error_of(damaged).split(" ")[0])
    assert len(seen) > 6, "of each kind something was found"


def test_every_cut_is_malformed() -> None:
    for each in EXAMPLES:
        whole = encode(each)
        assert all(error_of(whole[:end]) for end in range(len(whole)))
        assert error_of(whole + b"\xc0")


@pytest.mark.parametrize("said", EXAMPLES)
def test_each_side_says_its_own(said: Any) -> None:
    other = from_voter if isinstance(said, OF_MEMBERS) else from_member
    with pytest.raises(Malformed, match=r"says no "):
        other(encode(said))


@pytest.mark.parametrize(("what", "said"), [
    (replace(QUESTION, node=b"short"), "node has 5 bytes, not 16 to 16"),
    (replace(QUESTION, asker=""), "asker has 0 bytes, not 1 to 255"),
    (replace(QUESTION, grant=replace(GRANT, epoch=0)), "grant epoch is 0, not 1 to"),
    (replace(QUESTION, grant=replace(GRANT, copies=(Copy("a"),) * 17)),
     "grant copies are 17, and may be 16"),
    (Renew(NODE, GRANT, 0, 0, -1), "lease_ms is -1"),
    (Renew(NODE, GRANT, -1, 0), "version is -1, not 0 to"),
])  # fmt: skip
def test_what_is_out_of_bounds_is_not_even_written(what: Any, said: str) -> None:
    with pytest.raises(Malformed) as error:
        encode(what)
    assert said in str(error.value)


@pytest.mark.parametrize(("body", "said"), [
    (b"", "not MessagePack"),
    (msgpack.packb([6]), "a vote of kind 6"),
    (msgpack.packb([True, NODE, 1]), "a vote of kind True"),
    (msgpack.packb({"kind": 1}), "not MessagePack"),
    (msgpack.packb([4, NODE, 1, 2]), "release: is no list of node, epoch"),
    (msgpack.packb([4, NODE, "1"]), "release: epoch is str, not a number"),
    (encode(replace(QUESTION, ballot=None)), "question: no ballot, and its step is accept"),
    (encode(replace(QUESTION, step=Step.WOULD)), "question: a ballot, and its step is would"),
    (bytes(BYTES_MAX + 1), f"a vote of {BYTES_MAX + 1} bytes"),
])  # fmt: skip
def test_what_is_wrong_is_said(body: bytes, said: str) -> None:
    assert said in error_of(body)


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"known": null}', "[" * 100_000,
    text_of(Ledger(GRANT)).replace("7", "0"), text_of(Ledger(GRANT)).replace('"b"', "7"),
    json.dumps({**json.loads(text_of(Ledger(GRANT))), "more": 1}),
])  # fmt: skip
def test_another_text_is_no_ledger(text: str) -> None:
    with pytest.raises(Malformed):
        ledger_of(text)
