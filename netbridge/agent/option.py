"""The options of a message transfer agent: [[mta]]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.config.kind import Kind, choice, count, is_name, size
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.ipc.settings.setting import WhenFull
from shmbroker.netbridge.link.option import LINK_DEFAULTS
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.plans import with_rounds_asked_for
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import MASTERSLAVE, ROOT, STATIC, Member, Members, Single, singles

TABLE_ROOT: Final = "mta"
TABLE: Final = "mta.NAME"
HOPS_MAX: Final = 15
"""A message says by its node ids where it was: so many that there is room beside its properties."""
MESSAGES_MAX: Final = 1 << 20
QUEUE: Final = "$mta."
"""How the name of a queue begins in which messages wait for an agent's link."""
NAME_BYTES_MAX: Final = 255
ROOM: Final = 48
"""Beside an exchange, in the name of the queue of what is subscribed to: of a node and a number."""


class Refused(ValueError):
    """What does not go together; the message says which."""


class Mode(IntEnum):
    OFF = 0
    SUBSCRIBE = 1
    FORWARD_ALL = 2
    FORWARD_ELSE = 3
    BOTH = 4
    SERVICE = 5
    """By name only: 3, and exclusive bindings are copied."""

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def subscribes(self) -> bool:
        return self in (Mode.SUBSCRIBE, Mode.BOTH, Mode.SERVICE)

    @property
    def forwards(self) -> bool:
        return self not in (Mode.OFF, Mode.SUBSCRIBE)


LATER: Final = {
    "subscriber": Mode.SUBSCRIBE,
    "publisher": Mode.FORWARD_ALL,
    "fanout": Mode.FORWARD_ALL,
    "locator": Mode.FORWARD_ELSE,
}
"""What later versions of OpenAMQ call them."""
WORDS: Final = {each.word: each for each in Mode} | LATER
NUMBERED: Final = tuple(each for each in Mode if each is not Mode.SERVICE)


@dataclass(frozen=True, slots=True)
class Agent:
    exchange: str
    to: Member
    peers: str
    """Of the remote brokers, as they are part of names."""
    credentials: str
    mode: Mode
    max_hops: int
    max_messages: int
    max_bytes: int
    overflow: WhenFull
    times: LinkTimes
    refused_retry: float

    @property
    def name(self) -> str:
        """As people see it; other links have none with an @ and a mode behind it."""
        return f"{self.exchange}@{self.peers} {self.mode.word}"

    @property
    def queue(self) -> str:
        """In which messages wait that go there; empty: none do."""
        if not self.mode.forwards:
            return ""
        return f"{QUEUE}{self.exchange}.{self.peers}"


def _exchange(given: object) -> str:
    if given == "":
        raise ValueError("the name of an exchange: the default exchange cannot be joined")
    if not isinstance(given, str) or not is_name(given) or given.startswith("$"):
        raise ValueError('the name of an exchange, as in "quotes"')
    return given


def _vhost(given: object) -> str:
    if not isinstance(given, str) or not (given == ROOT or is_name(given)):
        raise ValueError('a name of up to 255 bytes without a slash, or "/"')
    return given


def _host(given: object) -> Member:
    """One broker, peers with commas, or a uri."""
    if not isinstance(given, str):
        raise ValueError(EXPECTED)
    try:
        found = parse(given if "(" in given else _listed(given))
    except InvalidArgument as error:
        raise ValueError(f"{EXPECTED}: {error}") from None
    if not isinstance(found, (Single, Members)):
        raise ValueError(EXPECTED)
    if isinstance(found, Members) and found.scheme == STATIC and len(found.members) > 1:
        raise ValueError(f"{EXPECTED}: static: is a link to each, which is an [[mta]] for each")
    return found


def _listed(given: str) -> str:
    return f"{MASTERSLAVE}:({given})" if "," in given else given


def _login(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("the NAME of a [credentials.NAME]")
    return given


def _mode(given: object) -> Mode:
    """By number, or by name."""
    for mode in NUMBERED:
        if given in (mode.value, str(mode.value)) and not isinstance(given, bool):
            return mode
    if isinstance(given, str) and given in WORDS:
        return WORDS[given]
    raise ValueError(MODES)


EXPECTED: Final = 'a broker, or two that take over from each other, as in "host:5555" or "a:1,b:1"'
MODES: Final = f"0 to 4, or {', '.join(WORDS)}"


def _row(
    name: str, kind: Kind, default: Default | None, help: str, *, is_required: bool = False
) -> Option:
    return Option(TABLE, name, kind, default, help, is_required=is_required, is_reloaded=True)


# fmt: off
AGENTS: Final = (
    _row("name", Kind("name", _exchange), None, "The exchange, here and there.", is_required=True),
    _row("vhost", Kind("name", _vhost), ROOT, "The network vhost there."),
    _row("host", Kind("uri", _host), None,
         "The other broker: `host:port`, several with commas (a pair), or a uri.",
         is_required=True),
    _row("login", Kind("name", _login), None,
         "The `[credentials.NAME]` of role `peering` by which it connects.", is_required=True),
    _row("mode", Kind("mode", _mode, "0…4, or a name", str), None,
         "What goes where: see [agents.md](agents.md).", is_required=True),
    _row("max-hops", count(1, HOPS_MAX), 8,
         "Over so many agents a message goes, at most."),
    _row("max-messages", count(1, MESSAGES_MAX), 100_000,
         "So many messages wait for the link in memory."),
    _row("max-bytes", size(1), "256MiB", "And so many bytes of them."),
    _row("overflow", choice("auto", "page", "block", "fail", "drop-oldest"), "auto",
         "What happens when more wait. `auto` is `page`."),
    *(replace(each, table=TABLE, default=None) for each in LINK_DEFAULTS),
)
# fmt: on


def agent(
    table: str, values: Mapping[str, Any], credentials: str, times: LinkTimes, retry: float
) -> Agent:
    """Refused: what does not go together."""
    mode, overflow = values["mode"], values["overflow"]
    to = _in_vhost(values["host"], values["vhost"], f"{table}.host")
    if isinstance(to, Members):
        to = with_rounds_asked_for(to)
    peers = ",".join(each.peer for each in singles(to))
    found = Agent(
        values["name"], to, peers, credentials, mode, values["max-hops"], values["max-messages"],
        values["max-bytes"], "page" if overflow == "auto" else overflow, times, retry,
    )  # fmt: skip
    if max(len(each.encode()) for each in (found.name, found.queue)) + ROOM > NAME_BYTES_MAX:
        raise Refused(
            f"{table}: exchange and host together are too long for the name of a queue, which has "
            f"at most {NAME_BYTES_MAX} bytes"
        )
    return found


def _in_vhost(member: Member, vhost: str, place: str) -> Member:
    if isinstance(member, Members):
        inside = tuple(_in_vhost(each, vhost, place) for each in member.members)
        return replace(member, members=inside)
    if member.vhost not in (ROOT, vhost):
        raise Refused(f"{place} names vhost {member.vhost!r}, and vhost is {vhost!r}: say it once")
    return replace(member, vhost=vhost)


def joined(found: Agent) -> tuple[str, frozenset[tuple[str, int]]]:
    """The exchange, and the other broker: at one address is one, by whatever name of its vhost."""
    return found.exchange, frozenset((each.host, each.port) for each in singles(found.to))


def beside(one: Agent, other: Agent) -> str:
    """Why two agents of one exchange do not go together; empty: they do."""
    if joined(one) == joined(other):
        if one.mode is other.mode:
            return f"in the same mode, {one.mode.value} ({one.mode.word})"
        if one.mode.forwards and other.mode.forwards:
            return f"and both forward to it: {one.mode.word} and {other.mode.word}"
        if one.mode.subscribes and other.mode.subscribes:
            return f"and both subscribe to it: {one.mode.word} and {other.mode.word}"
    return ""
