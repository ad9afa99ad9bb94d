"""Programs, properties and messages that are not what they should be, for selectors.

Each function is run in a process of its own, so that a crash is seen as one.
"""

from __future__ import annotations

import random
import threading

import msgpack

from shmbroker import Selector
from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from tests.core.fenced import Fenced

TEXTS = [
    "colour = 'red' AND n BETWEEN 3 AND 5",
    "a IN (1, 2.5, -3) OR NOT (b LIKE '%a_%!%' ESCAPE '!') OR c IS NOT NULL",
    "-(a + b * (c - 2) / n) > 1e3 AND (a = 1 OR b = 2 OR (c = 3 AND n <> 4) OR colour = 'x')",
    "JMSPriority > 3 AND $key LIKE 'eu.%' AND $size < 100 AND JMSTimestamp > 5 AND JMSType = 't'",
]
PROPERTIES = {
    "colour": "red",
    "n": 4,
    "list": [1, {"deep": [None, b"bytes"]}, "x" * 40],
    "a": 2.5,
    "b": "a" * 300,
    "c": -(1 << 40),
    "ext": msgpack.ExtType(5, b"12345678"),
}


def damaged(chance: random.Random, whole: bytes) -> bytes:
    """Bits flipped, cut off, or nothing but noise."""
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(100))
    if kind == 1:
        return whole[: chance.randrange(len(whole) + 1)]
    changed = bytearray(whole)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def run_noise(seed: int, rounds: int = 30_000) -> None:
    """Programs and properties right before memory that cannot be read: what passes the check."""
    chance = random.Random(seed)
    programs = [Selector(text).program for text in TEXTS]
    packed = msgpack.packb(PROPERTIES)
    code_memory, property_memory = Fenced(1 << 17), Fenced(1 << 17)
    subject = ffi.new("sb_subject *", {"priority": 4, "key": ffi.NULL})
    ran = 0
    for _ in range(rounds):
        program, content = chance.choice(programs), packed
        if chance.random() < 0.7:
            program = damaged(chance, program)
        if chance.random() < 0.7:
            content = damaged(chance, packed)
        code = code_memory.hold(program)
        subject.properties = property_memory.hold(content)
        subject.properties_length = len(content)
        if lib.sb_selector_check(code, len(program)) == OK:
            assert lib.sb_selector_matches(code, len(program), subject) in (0, 1)
            ran += 1
    assert rounds // 4 < ran < rounds


def run_changing(seed: int, seconds: float = 3.0) -> None:
    """The properties change while they are looked at."""
    chance = random.Random(seed)
    packed = msgpack.packb(PROPERTIES)
    memory = Fenced(1 << 12)
    place = memory.hold(packed)
    buffer = ffi.buffer(place, len(packed))
    subjects = ffi.new("sb_subject[1000]")
    for subject in subjects:
        subject.properties, subject.properties_length = place, len(packed)
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            buffer[:] = damaged(chance, packed).ljust(len(packed), b"\xdf")[: len(packed)]
            buffer[:] = packed

    changer = threading.Thread(target=change)
    timer = threading.Timer(seconds, ended.set)
    changer.start()
    timer.start()
    programs = [Selector(text).program for text in TEXTS]
    while not ended.is_set():
        for program in programs:
            assert 0 <= lib.sb_selector_count(program, len(program), subjects, 1000) <= 1000
    changer.join()
