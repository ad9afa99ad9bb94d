"""The options of a network link: [links.NAME]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import FLAG, Kind, count, is_name
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.link.option import LINK_DEFAULTS
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.network.demand import Terms
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import STATIC, Found, Member, Members, Single

ROOT: Final = "links"
TABLE: Final = "links.NAME"
HOPS_MAX: Final = 255
PREFETCH_MAX: Final = 10_000
NAME_BYTES_MAX: Final = 128
"""Of a link with the address of its member: it is part of the name of a queue."""


class Refused(ValueError):
    """What does not work yet, or not together; the message says which."""


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One link to one service, by which messages come from there."""

    name: str
    to: Member
    credentials: str
    terms: Terms
    is_duplex: bool
    times: LinkTimes
    refused_retry: float


def _uri(given: object) -> Members | Single:
    found = parse(given) if isinstance(given, str) else None
    if isinstance(found, Found):
        raise ValueError("the address of a broker or a list: a link cannot discover its yet")
    if not isinstance(found, (Members, Single)):
        raise ValueError('a broker or a list, as in "tcp://host" or "masterslave:(a,b)"')
    return found


def _credentials(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("the NAME of a [credentials.NAME]")
    return given


def _patterns(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise ValueError('patterns of names, as in ["orders.#", "stock.*"]')
    return tuple(dict.fromkeys(given))


PATTERNS: Final = Kind("patterns", _patterns, text=lambda found: str(list(found)))
HOPS: Final = count(1, HOPS_MAX, is_endless=True)

NOT_YET: Final[dict[str, tuple[object, str]]] = {
    "max-hops": (1, "a message that came over a link goes no further"),
    "network-ttl": (1, "a message that came over a link goes no further"),
    "message-ttl": (1, "a message that came over a link goes no further"),
    "consumer-ttl": (1, "only consumers of this broker count"),
    "conduit-subscriptions": (True, "all consumers here count as one there"),
    "replay-when-no-consumers": (False, "a message that came over a link stays"),
    "dynamic-only": (False, "what goes through exchanges does not go over links"),
    "decrease-consumer-priority": (False, "a link counts as any consumer does"),
    "suppress-duplicate-subscriptions": (True, "demand goes one hop, so by one way"),
    "bridge-temporary": (False, "temporary queues are of their broker alone"),
    "always-sync-send": (False, "confirms are of many messages"),
}
"""Options with the only value that this version knows, and what it does."""


def _row(
    name: str, kind: Kind, default: Default | None, help: str, *, is_required: bool = False
) -> Option:
    if name in NOT_YET:
        help = f"{help} Only {_shown(NOT_YET[name][0])} so far."
    return Option(TABLE, name, kind, default, help, is_required=is_required, is_reloaded=True)


def _shown(value: object) -> str:
    return str(value).lower()


# fmt: off
NETWORK_LINKS: Final = (
    _row("uri", Kind("uri", _uri), None, "The other broker, or a list.", is_required=True),
    _row("credentials", Kind("name", _credentials), None,
         "By which it connects; not needed if only one has the role `peering`."),
    _row("duplex", FLAG, False, "Messages go both ways, each on demand of the other end."),
    _row("prefetch-size", count(1, PREFETCH_MAX), 1000,
         "So many messages may be on their way to this broker."),
    _row("max-hops", HOPS, 1, "How far messages and demand go."),
    _row("network-ttl", HOPS, 1, "Another name of it."),
    _row("message-ttl", HOPS, 1, "How far messages go."),
    _row("consumer-ttl", HOPS, 1, "How far demand goes."),
    _row("conduit-subscriptions", FLAG, True,
         "All consumers of a queue here count as one there."),
    _row("replay-when-no-consumers", FLAG, False,
         "A message may go back to where it came from, if nobody consumes here."),
    _row("dynamic-only", FLAG, False, "Subscriptions by name count only while somebody consumes."),
    _row("static-bridge", FLAG, False, "Only what `include-static` says, without demand."),
    _row("include", PATTERNS, ["#"], "Queues of which messages come on demand."),
    _row("include-static", PATTERNS, [],
         "Queues here of which messages come also if nobody consumes."),
    _row("exclude", PATTERNS, [], "None of these, whatever the others say."),
    _row("decrease-consumer-priority", FLAG, False, "Consumers there come first."),
    _row("suppress-duplicate-subscriptions", FLAG, True,
         "One demand for each queue, by however many ways."),
    _row("bridge-temporary", FLAG, False, "Temporary queues, too."),
    _row("always-sync-send", FLAG, False, "Confirm each message that is not durable by itself."),
    *(replace(each, table=TABLE, default=None) for each in LINK_DEFAULTS),
)
# fmt: on


def terms_of(name: str, values: Mapping[str, Any]) -> Terms:
    """Refused: what does not work yet."""
    for key, (only, why) in NOT_YET.items():
        if values[key] != only:
            raise Refused(f"links.{name}.{key} can only be {_shown(only)} so far: {why}")
    if values["static-bridge"] and not values["include-static"]:
        raise Refused(
            f"links.{name}.static-bridge needs include-static: without it nothing ever comes"
        )
    return Terms(
        values["prefetch-size"],
        values["include"],
        values["include-static"],
        values["exclude"],
        values["static-bridge"],
    )


def services(name: str, uri: Members | Single) -> Iterator[tuple[str, Member]]:
    """One for each link, with its name; Refused: a name is too long, or one broker twice."""
    found: list[tuple[str, Member]] = [(name, uri)]
    if isinstance(uri, Members) and uri.scheme == STATIC:
        found = [
            (f"{name}@{_first(each).peer}", replace(uri, members=(each,))) for each in uri.members
        ]
    if len({each for each, _ in found}) < len(found):
        raise Refused(f"links.{name}.uri names the same broker twice")
    for each, to in found:
        if len(each.encode(errors="replace")) > NAME_BYTES_MAX:
            raise Refused(f"links.{name}: a name of at most {NAME_BYTES_MAX} bytes, not {each!r}")
        yield each, to


def _first(member: Member) -> Single:
    return member if isinstance(member, Single) else _first(member.members[0])
