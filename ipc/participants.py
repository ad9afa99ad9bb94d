"""The table of participants and the log of errors, read: without a lock or a living broker."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any

from shmbroker.core import layout as at
from shmbroker.ipc._native import ffi, lib

_STATES = {at.PARTICIPANT_LIVE: "live", at.PARTICIPANT_LEAVING: "leaving"}
_ENTRY = Struct("<7q")
_LIST = Struct(f"<{at.PARTICIPANT_LIST}q")
_LOG = Struct("<4q")
USES = at.USES


@dataclass(frozen=True, slots=True)
class ParticipantInfo:
    id: int
    pid: int
    name: str
    state: str
    """live, leaving, or dead: its process is gone, and nobody has repaired what it left yet."""
    connected_at: int
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    text: str
    count: int
    first_at: int
    last_at: int


class Participants:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._memory = ffi.buffer(lib.sb_participants(connection), at.PARTICIPANTS_BYTES)

    def listed(self, names: dict[int, str]) -> list[ParticipantInfo]:
        (high,) = Struct("<q").unpack_from(self._memory, at.PARTICIPANTS_HIGH_AT)
        listed = []
        for number in range(1, min(high, at.PARTICIPANTS)):
            start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES
            data = self._memory[start : start + at.PARTICIPANT_BYTES]
            state, pid, _start, _namespace, joined, used, length = _ENTRY.unpack_from(data)
            if state not in _STATES:
                continue
            length = max(0, min(length, at.PARTICIPANT_NAME_BYTES_MAX))
            name = data[at.PARTICIPANT_NAME_AT : at.PARTICIPANT_NAME_AT + length]
            words = _LIST.unpack_from(data, at.PARTICIPANT_LIST_AT)[: max(0, used)]
            queues = (names.get(word & ~USES) for word in words if word)
            alive = lib.sb_participant_lives(self._connection, number)
            listed.append(
                ParticipantInfo(
                    id=number,
                    pid=pid,
                    name=name.decode(errors="replace"),
                    state=_STATES[state] if alive else "dead",
                    connected_at=joined,
                    queues=tuple(sorted(each for each in queues if each is not None)),
                )
            )
        return listed

    def uses(self) -> dict[int, tuple[int, int]]:
        """How many participants take from and publish to each queue, by reference."""
        (high,) = Struct("<q").unpack_from(self._memory, at.PARTICIPANTS_HIGH_AT)
        uses: dict[int, tuple[int, int]] = {}
        for number in range(1, min(high, at.PARTICIPANTS)):
            start = at.PARTICIPANTS_AT + number * at.PARTICIPANT_BYTES
            state, _, _, _, _, used, _ = _ENTRY.unpack_from(self._memory, start)
            if state != at.PARTICIPANT_LIVE:
                continue
            words = _LIST.unpack_from(self._memory, start + at.PARTICIPANT_LIST_AT)
            for word in words[: max(0, used)]:
                consumers, producers = uses.get(word & ~USES, (0, 0))
                consumers += bool(word & at.USE_CONSUMES)
                producers += bool(word & at.USE_PRODUCES)
                uses[word & ~USES] = consumers, producers
        return uses

    def errors(self) -> list[ErrorInfo]:
        noted = []
        for index in range(at.LOG_ENTRIES):
            start = at.PARTICIPANTS_LOG_AT + index * at.LOG_BYTES
            data = self._memory[start : start + at.LOG_BYTES]
            count, first, last, length = _LOG.unpack_from(data)
            if count > 0:
                end = at.LOG_TEXT_AT + max(0, min(length, at.LOG_BYTES - at.LOG_TEXT_AT))
                text = data[at.LOG_TEXT_AT : end].decode(errors="replace")
                noted.append(ErrorInfo(text, count, first, last))
        return sorted(noted, key=lambda each: -each.last_at)
