"""A schedule: which actor does what, in order; written so that a person can read and replay it.

producer          one step
producer*5        five steps
repairer:1         one step, with the second answer to its question
!producer         killed
=producer         stopped, for ever
~producer         its oldest buffered store becomes visible
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

STEP: Final = ""
KILL: Final = "!"
STOP: Final = "="
FLUSH: Final = "~"

ANSWERS_MAX: Final = 4
_MARKS: Final = (STEP, KILL, STOP, FLUSH)


@dataclass(frozen=True, slots=True)
class Action:
    """What happens to one actor."""

    who: int
    mark: str = STEP
    answer: int = 0

    def packed(self) -> int:
        return (self.who * len(_MARKS) + _MARKS.index(self.mark)) * ANSWERS_MAX + self.answer

    @classmethod
    def unpacked(cls, packed: int) -> Action:
        rest, answer = divmod(packed, ANSWERS_MAX)
        who, mark = divmod(rest, len(_MARKS))
        return cls(who, _MARKS[mark], answer)


def written(schedule: Iterable[Action], names: Sequence[str]) -> str:
    parts = []
    for action, group in groupby(schedule):
        count = len(list(group))
        answer = f":{action.answer}" if action.answer else ""
        times = f"*{count}" if count > 1 else ""
        parts.append(f"{action.mark}{names[action.who]}{answer}{times}")
    return " ".join(parts)


def read(text: str, names: Sequence[str]) -> Iterator[Action]:
    for part in text.split():
        rest, _, times = part.partition("*")
        mark = rest[0] if rest[0] in _MARKS else STEP
        name, _, answer = rest[len(mark) :].partition(":")
        if name not in names:
            raise ValueError(f"no actor is called {name!r}; there are {', '.join(names)}")
        for _ in range(int(times or 1)):
            yield Action(names.index(name), mark, int(answer or 0))
