"""Reading the table of participants and the log of errors, without a lock or a live process."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from shmbroker.core import layout as at
from shmbroker.ipc._native import ffi, lib

_STATES = {at.PARTICIPANT_LIVE: "live", at.PARTICIPANT_LEAVING: "leaving"}
_ENTRY = Struct("<7q")
_LIST = Struct(f"<{at.PARTICIPANT_LIST}q")
_LOG = Struct("<4q")
_WORD = Struct("<q")
_SELECTOR = Struct("<2q")
USES = at.USES
TRIES = 3
"""How often to read what changes meanwhile."""


@dataclass(frozen=True, slots=True)
class ParticipantInfo:
    id: int
    pid: int
    name: str
    state: str
    """live, leaving, or dead: its process is gone, and nobody has repaired what it left yet;
    closing: it is to leave, and has not found out yet."""
    connected_at: int
    queues: tuple[str, ...]
    bytes: int
    """Of the arena, in all queues: messages that it has published, and memory that it keeps."""
    pid_namespace: int = 0
    """In which its pid counts, as the inode of /proc/PID/ns/pid."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    text: str
    count: int
    first_at: int
    last_at: int


def _selectors(page: bytes, reference: int) -> frozenset[str]:
    """As ipc/vhost/selectors.c writes them."""
    found = set()
    place = 0
    while place + _SELECTOR.size <= len(page):
        whose, length = _SELECTOR.unpack_from(page, place)
        if whose == 0 or not 0 < length <= at.SELECTOR_BYTES_MAX:
            break
        place += _SELECTOR.size
        if whose == reference:
            try:
                found.add(page[place : place + length].decode())
            except UnicodeDecodeError:  # nobody selects so: something else has written there
                return frozenset()
        place += length + -length % 8
    return frozenset(found)


class Participants:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._memory = ffi.buffer(lib.sb_participants(connection), at.PARTICIPANTS_BYTES)

    def listed(self, names: dict[int, str]) -> list[ParticipantInfo]:
        (high,) = Struct("<q").unpack_from(self._memory, at.PARTICIPANTS_HIGH_AT)
        shares = ffi.new("int64_t[]", at.PARTICIPANTS)
        lib.sb_arena_shares(self._connection, shares)
        listed = []
        for number in range(1, min(high, at.PARTICIPANTS)):
            start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES
            data = self._memory[start : start + at.PARTICIPANT_BYTES]
            state, pid, _start, namespace, joined, used, length = _ENTRY.unpack_from(data)
            if state not in _STATES:
                continue
            length = max(0, min(length, at.PARTICIPANT_NAME_BYTES_MAX))
            name = data[at.PARTICIPANT_NAME_AT : at.PARTICIPANT_NAME_AT + length]
            words = _LIST.unpack_from(data, at.PARTICIPANT_LIST_AT)[: max(0, used)]
            using = {word & ~USES for word in words if word}
            if beyond := self._beyond_list(number, used):
                using |= {each for each in names if beyond[each & at.REFERENCE_INDEX_MASK]}
            queues = (names.get(reference) for reference in using)
            alive = lib.sb_participant_lives(self._connection, number)
            (expelled,) = _WORD.unpack_from(data, at.PARTICIPANT_EXPELLED_AT)
            here = "closing" if expelled and abs(expelled) == joined else _STATES[state]
            listed.append(
                ParticipantInfo(
                    id=number,
                    pid=pid,
                    name=name.decode(errors="replace"),
                    state=here if alive else "dead",
                    connected_at=joined,
                    queues=tuple(sorted(each for each in queues if each is not None)),
                    bytes=shares[number],
                    pid_namespace=namespace,
                )
            )
        return listed

    def with_transactions(self) -> dict[int, tuple[int, str]]:
        """Who lives and has one that has begun and is not over, by number: its pid and name."""
        (high,) = Struct("<q").unpack_from(self._memory, at.PARTICIPANTS_HIGH_AT)
        found = {}
        for number in range(1, min(high, at.PARTICIPANTS)):
            start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES
            (begun,) = _WORD.unpack_from(self._memory, start + at.PARTICIPANT_OPEN_AT)
            if begun <= 0:
                continue
            state, pid, *_, length = _ENTRY.unpack_from(self._memory, start)
            if state == at.PARTICIPANT_LIVE and lib.sb_participant_lives(self._connection, number):
                name = start + at.PARTICIPANT_NAME_AT
                length = max(0, min(length, at.PARTICIPANT_NAME_BYTES_MAX))
                told = bytes(self._memory[name : name + length]).decode(errors="replace")
                found[number] = pid, told
        return found

    def uses(self, references: Collection[int]) -> dict[int, tuple[int, int]]:
        """How many participants take from and publish to each of these queues, by reference."""
        uses: dict[int, tuple[int, int]] = {}
        for _, using in self._using(references):
            for reference, use in using.items():
                consumers, producers = uses.get(reference, (0, 0))
                consumers += bool(use & at.USE_CONSUMES)
                producers += bool(use & at.USE_PRODUCES)
                uses[reference] = consumers, producers
        return uses

    def taken(self, references: Collection[int]) -> dict[int, frozenset[str]]:
        """What is taken from these queues, by reference: what one of the selectors matches, or
        everything if there are none.  A queue that nobody takes from is not there."""
        everything: frozenset[str] = frozenset()
        found: dict[int, frozenset[str]] = {}
        for number, using in self._using(references):
            for reference, use in using.items():
                if not use & at.USE_CONSUMES:
                    continue
                own = everything if use & at.USE_TAKES_ANY else self._selected(number, reference)
                known = found.get(reference)
                found[reference] = own | (own if known is None else known)
                if not own or known == everything:
                    found[reference] = everything
        return found

    def _selected(self, number: int, reference: int) -> frozenset[str]:
        """Selectors that a participant has told of this queue; none if they are not to be read."""
        start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES + at.PARTICIPANT_SELECTORS_AT
        page = at.PARTICIPANTS_SELECTORS_AT + number * at.SELECTORS_BYTES
        for _ in range(TRIES):
            before = self._memory[start : start + 8]
            (version,) = _WORD.unpack(before)
            if version == 0:
                break
            copied = self._memory[page : page + at.SELECTORS_BYTES]
            if version % 2 == 0 and self._memory[start : start + 8] == before:
                return _selectors(copied, reference)
        return frozenset()

    def uses_now(self) -> bytes:
        """As it is stored: the same again while nobody begins or ends to use a queue, or tells
        another selector."""
        found = []
        for number, start, used in self._living():
            listed = start + at.PARTICIPANT_LIST_AT
            told = start + at.PARTICIPANT_SELECTORS_AT
            found.append(self._memory[told : told + _WORD.size])
            found.append(self._memory[listed : listed + _LIST.size])
            found.append(used.to_bytes(8, "little") + self._beyond_list(number, used))
        return b"".join(found)

    @property
    def has_pages(self) -> bool:
        """Whether a broker pages queues of this vhost, or did: without one no queue may page."""
        (pages,) = _WORD.unpack_from(self._memory, at.PARTICIPANTS_PAGES_AT)
        return bool(pages)

    def is_served(self, reference: int) -> bool:
        """Whether a living participant serves this queue for others."""
        return any(
            using.get(reference, 0) & at.USE_SERVES
            and lib.sb_participant_lives(self._connection, number)
            for number, using in self._using([reference])
        )

    def _using(self, references: Collection[int]) -> Iterator[tuple[int, dict[int, int]]]:
        """What each participant uses each of these queues for, by reference."""
        for number, start, used in self._living():
            words = _LIST.unpack_from(self._memory, start + at.PARTICIPANT_LIST_AT)
            using = {word & ~USES: word & USES for word in words[: max(0, used)]}
            if beyond := self._beyond_list(number, used):
                for reference in references:
                    bits = beyond[reference & at.REFERENCE_INDEX_MASK] << at.USE_SHIFT
                    using[reference] = using.get(reference, 0) | bits
            yield number, using

    def _living(self) -> Iterator[tuple[int, int, int]]:
        """Of each: its number, where its entry begins, and how many places of its list it uses."""
        (high,) = Struct("<q").unpack_from(self._memory, at.PARTICIPANTS_HIGH_AT)
        for number in range(1, min(high, at.PARTICIPANTS)):
            start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES
            state, _, _, _, _, used, _ = _ENTRY.unpack_from(self._memory, start)
            if state == at.PARTICIPANT_LIVE:
                yield number, start, used

    def _beyond_list(self, number: int, used: int) -> bytes:
        """What it uses the queue of each row for that its list has no place for."""
        if used <= at.PARTICIPANT_LIST:
            return b""
        start = at.PARTICIPANTS_USES_AT + number * at.USES_BYTES
        return bytes(self._memory[start : start + at.USES_BYTES])

    def errors(self) -> list[ErrorInfo]:
        entries = (self.error(index) for index in range(at.LOG_ENTRIES))
        return sorted((each for each in entries if each), key=lambda each: -each.last_at)

    def error(self, index: int) -> ErrorInfo | None:
        """One entry of the log; None if it is not used."""
        start = at.PARTICIPANTS_LOG_AT + index * at.LOG_BYTES
        data = self._memory[start : start + at.LOG_BYTES]
        count, first, last, length = _LOG.unpack_from(data)
        if count <= 0:
            return None
        end = at.LOG_TEXT_AT + max(0, min(length, at.LOG_BYTES - at.LOG_TEXT_AT))
        text = data[at.LOG_TEXT_AT : end].decode(errors="replace")
        return ErrorInfo(text, count, first, last)
