"""python -m shmbroker.perf.micro.selectors: what a selector costs a message, on one core.

    program ──► sb_selector_count ──► 1,000 subjects, their properties packed one behind the other

Nothing is published: it is the evaluation alone, looped in C.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import msgpack

from shmbroker import Selector
from shmbroker.ipc._native import ffi, lib

SELECTORS = {
    "one comparison": "n > 3",
    "typical": "colour = 'red' AND n BETWEEN 3 AND 5",
    "a list, a pattern": "country IN ('UK', 'US', 'FR') AND product LIKE 'book-%'",
    "arithmetic": "price * n - discount > 100.5 OR NOT (colour <> 'red')",
    "headers only": "JMSPriority > 3 AND $key LIKE 'eu.%'",
}
PROPERTIES = (1, 5, 20)
MESSAGES = 1_000
ROUNDS = 9
ROUND_S = 0.05


def properties_of(number: int, count: int) -> dict[str, Any]:
    """The first ones are asked for, the others are in the way, and come first."""
    asked = {
        "colour": ("red", "green")[number % 2],
        "n": 7 if number % 4 == 2 else 4,
        "country": ("US", "PE")[number % 2],
        "product": "book-about-rings",
        "price": 19.5,
    }
    wanted = dict(list(asked.items())[:count])
    return {f"header-{each}": f"value {each}" for each in range(count - len(wanted))} | wanted


def subjects_of(count: int) -> tuple[Any, list[Any]]:
    """The subjects, and the memory that they point to."""
    subjects, kept = ffi.new("sb_subject[]", MESSAGES), [ffi.from_buffer(b"eu.de.fx")]
    for number, subject in enumerate(subjects):
        packed = ffi.from_buffer(msgpack.packb(properties_of(number, count)))
        kept.append(packed)
        subject.properties, subject.properties_length = packed, len(packed)
        subject.key, subject.key_length = kept[0], len(kept[0])
        subject.priority = 3 + number % 2
    return subjects, kept


def nanoseconds_each(program: bytes, subjects: Any) -> float:
    evaluated, before = 0, time.perf_counter_ns()
    while (spent := time.perf_counter_ns() - before) < ROUND_S * 1e9:
        lib.sb_selector_count(program, len(program), subjects, MESSAGES)
        evaluated += MESSAGES
    return spent / evaluated


def main() -> int:
    made = {count: subjects_of(count) for count in PROPERTIES}
    programs = {name: Selector(text).program for name, text in SELECTORS.items()}
    costs: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):  # interleaved: the machine's moods meet all alike
        for name, program in programs.items():
            for count, (subjects, _) in made.items():
                cost = nanoseconds_each(program, subjects)
                costs.setdefault((name, count), []).append(cost)
    for (name, count), rounds in costs.items():
        cost, (subjects, _) = median(rounds), made[count]
        program = programs[name]
        selected = lib.sb_selector_count(program, len(program), subjects, MESSAGES)
        sys.stdout.write(
            f"{name:18} {count:>2} properties  {cost:>6.0f} ns  {1e3 / cost:>5.1f} million/s"
            f"  {selected / MESSAGES:>4.0%} selected\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
