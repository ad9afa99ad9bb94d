"""Kinds of values in a configuration and in a uri: what is allowed, how it is read and written.

A time is an integer of milliseconds or a text with a unit; -1 means no limit, where an option says
that it may.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.core.layout import CATALOG_NAME_BYTES_MAX
from shmbroker.ipc.base.units import DURATIONS, KIB, parse_duration, parse_size
from shmbroker.ipc.instance.config.secret import secret_of

ENDLESS: Final = -1
"""No limit."""
SEGMENT_UNIT: Final = 4096
SEGMENT_MIN: Final = 4 * SEGMENT_UNIT
SEGMENT_MAX: Final = 1 << 40
TRUE: Final = (True, 1, "1", "yes", "true")
FALSE: Final = (False, 0, "0", "no", "false")
NAME_BYTES: Final = 255
VHOST: Final = rf"[A-Za-z0-9_-]{{1,{CATALOG_NAME_BYTES_MAX}}}"
"""As `ipc/vhost/vhost.c` has it."""
NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    """As the documentation calls it."""
    parse: Callable[[object], Any]
    """ValueError says what was expected."""
    allowed: str = ""
    """Bounds or words, for the documentation."""
    text: Callable[[Any], str] = str
    """A value as people write it."""


def duration_text(seconds: float) -> str:
    """Exact, in the largest unit of which it is a whole number: 250ms."""
    if seconds == ENDLESS:
        return "-1"
    count = round(seconds * NS)
    for unit in ("d", "h", "s", "ms", "us"):
        size = round(DURATIONS[unit] * NS)
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return f"{count}ns" if count else "0s"


def size_text(size: int) -> str:
    """Exact, in the largest unit of which it is a whole number: 64KiB."""
    for unit, bytes_ in (("GiB", KIB**3), ("MiB", KIB**2), ("KiB", KIB)):
        if size > 0 and size % bytes_ == 0:
            return f"{size // bytes_}{unit}"
    return str(size)


def number_text(number: float) -> str:
    return f"{number:g}"


def flag_text(flag: bool) -> str:
    return "true" if flag else "false"


def is_integer(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def is_unicode(text: str) -> bool:
    """Not so the name of a file that is no UTF-8: os.fsdecode makes surrogates of its bytes."""
    return not re.search("[\ud800-\udfff]", text)


def _text(given: object) -> str:
    if not isinstance(given, str) or not given or "\0" in given or not is_unicode(given):
        raise ValueError('text, as in "orders"')
    return given


def _name(given: object) -> str:
    """Of a broker: others are told it."""
    if not isinstance(given, str) or len(_text(given).encode()) > NAME_BYTES:
        raise ValueError(f'text of up to {NAME_BYTES} bytes, as in "orders"')
    return given


def _folder(given: object) -> str:
    if not isinstance(given, str) or "\0" in given:
        raise ValueError('a folder, as in "latency", or "" for none')
    return given


def _group(given: object) -> str:
    if not isinstance(given, str) or "\0" in given:
        raise ValueError('a group, as in "orders", or "" for none')
    return given


def is_name(given: str) -> bool:
    """1 to 255 bytes without slashes and control characters."""
    size = len(given.encode(errors="replace"))
    return 0 < size <= NAME_BYTES and not re.search(r"[/\x00-\x1f\x7f]", given)


def _vhost(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(VHOST, given):
        raise ValueError(f'a name of 1 to {CATALOG_NAME_BYTES_MAX} letters, digits, "-" and "_"')
    return given


def _network_vhost(given: object) -> str:
    if not isinstance(given, str) or not (given in ("", "/") or is_name(given)):
        raise ValueError('a name of up to 255 bytes without a slash, "/", or "" for both')
    return given


def _flag(given: object) -> bool:
    for flag, words in ((True, TRUE), (False, FALSE)):
        if isinstance(given, (bool, int, str)) and given in words:
            return flag
    raise ValueError("true or false")


def _size(given: object) -> int:
    if is_integer(given):
        given = str(given)
    try:
        return parse_size(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError('a size, as in "64MiB"') from None


def _segment(given: object) -> int:
    size = _size(given)
    if size % SEGMENT_UNIT or not SEGMENT_MIN <= size <= SEGMENT_MAX:
        raise ValueError('a size in whole pages of 4KiB, from 16KiB to 1TiB, as in "64MiB"')
    return size


def _duration(given: object) -> float:
    if is_integer(given):
        given = f"{given}ms"
    try:
        seconds = parse_duration(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError('a time, as in "500ms"') from None
    return round(seconds * NS) / NS


def _count(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise ValueError("a number")
    return given


def _factor(given: object) -> float:
    if not isinstance(given, (int, float)) or isinstance(given, bool) or given != given:
        raise ValueError("a number, as in 2.0")
    return float(given)


def _table(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"([a-z_]\w*\.)?[a-z_]\w*", given, re.A):
        raise ValueError('the name of a table, as in "shmbroker_lease" or "broker.lease"')
    return given


def _is_words(given: object) -> bool:
    return isinstance(given, list) and all(
        isinstance(word, str) and "\0" not in word for word in given
    )


def _commands(given: object) -> tuple[tuple[str, ...], ...]:
    """One command, or a list of them."""
    commands = [given] if _is_words(given) else given
    if not isinstance(commands, list) or not all(map(_is_words, commands)):
        raise ValueError('words, as in ["/usr/local/bin/may-i", "orders"], or a list of such')
    return tuple(tuple(each) for each in commands if each)


def _members(given: object) -> tuple[tuple[str, str], ...]:
    """Names with uris, in order."""
    expected = 'names and uris, as in ["a=tcp://one:61616", "b=tcp://two:61616"]'
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ValueError(expected)
    pairs = [tuple(part.strip() for part in each.split("=", 1)) for each in given]
    if not all(len(pair) == 2 and is_name(pair[0]) and pair[1] for pair in pairs):
        raise ValueError(expected)
    if len({pair[0] for pair in pairs}) < len(pairs):
        raise ValueError(f"{expected}, each name once")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _queues(given: object) -> tuple[str, ...]:
    is_list = isinstance(given, list) and all(isinstance(each, str) for each in given)
    if not isinstance(given, list) or not is_list or not all(is_name(each) for each in given):
        raise ValueError('names of queues, as in ["orders", "payments"]')
    return tuple(given)


def bounded(
    name: str,
    parse: Callable[[object], Any],
    text: Callable[[Any], str],
    least: float | None,
    most: float | None,
    is_endless: bool,
) -> Kind:
    """A kind of numbers with bounds; -1 is none of them, but may be allowed."""
    low = None if least is None else text(least)
    high = None if most is None else text(most)
    allowed = f"{low or ''}…{high or ''}" if low or high else ""
    if is_endless:
        allowed = f"{allowed}, -1: no limit" if allowed else "-1: no limit"

    def value(given: object) -> Any:
        if is_endless and given in (ENDLESS, "-1") and not isinstance(given, bool):
            return ENDLESS
        try:
            found = parse(given)
        except ValueError as error:
            raise ValueError(f"{error}{' or -1' if is_endless else ''}") from None
        if (least is not None and found < least) or (most is not None and found > most):
            raise ValueError(f"in {allowed}")
        return found

    return Kind(name, value, allowed, text)


def duration(least: float = 0, most: float | None = None, *, is_endless: bool = False) -> Kind:
    return bounded("time", _duration, duration_text, least or None, most, is_endless)


def size(least: int = 0, most: int | None = None, *, is_endless: bool = False) -> Kind:
    return bounded("size", _size, size_text, least or None, most, is_endless)


def count(least: int | None = 0, most: int | None = None, *, is_endless: bool = False) -> Kind:
    return bounded("number", _count, str, least, most, is_endless)


def factor(least: float, most: float) -> Kind:
    return bounded("factor", _factor, number_text, least, most, False)


def choice(*words: str) -> Kind:
    allowed = " or ".join(f'"{each}"' for each in words)

    def value(given: object) -> str:
        if given not in words:
            raise ValueError(allowed)
        return str(given)

    return Kind("word", value, ", ".join(f"`{each}`" for each in words))


TEXT: Final = Kind("text", _text)
NAME: Final = Kind("text", _name)
FOLDER: Final = Kind("folder", _folder)
GROUP: Final = Kind("group", _group)
VHOST_NAME: Final = Kind("name", _vhost)
NETWORK_VHOST: Final = Kind("name", _network_vhost)
FLAG: Final = Kind("flag", _flag, text=flag_text)
SIZE: Final = size()
SEGMENT: Final = Kind("size", _segment, "16KiB…1TiB", size_text)
DURATION: Final = duration()
TABLE: Final = Kind("table", _table)
COMMANDS: Final = Kind("commands", _commands)
QUEUES: Final = Kind("names", _queues)
MEMBERS: Final = Kind("members", _members)
SECRET: Final = Kind("secret", secret_of)
