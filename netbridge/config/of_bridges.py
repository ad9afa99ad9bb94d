"""Links of a broker to others by which messages go, [bridges.NAME], or come, [links.NAME]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shmbroker.core.layout import NAME_BYTES_MAX
from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.netbridge.discovery.option import Discovery
from shmbroker.netbridge.link.option import LINK_DEFAULTS, Contradiction, overridden, times_of
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.network import option as of_networks
from shmbroker.netbridge.network.option import NetworkLink
from shmbroker.netbridge.plan.bridge import outbox_of, paced
from shmbroker.netbridge.plan.plans import with_rounds_asked_for
from shmbroker.netbridge.plan.uri import Found, Members

BRIDGES: Final = "bridges"


@dataclass(frozen=True, slots=True)
class Bridge:
    """A queue that is shipped to another broker."""

    name: str
    queue: str
    to: Members
    """Nobody yet, if its members are found."""
    address: str
    """Where its messages go there."""
    selector: str | None
    transformer: str | None
    credentials: str
    times: LinkTimes
    refused_retry: float
    discovery: Discovery | None = None
    """By which its members are found."""

    @property
    def ships(self) -> str:
        """The queue that its link ships."""
        is_plain = self.selector is None and self.transformer is None
        return self.queue if is_plain else outbox_of(self.name, self.queue)

    @property
    def plan(self) -> str:
        """As people know it."""
        return f"discovery:{self.discovery.name}" if self.discovery else str(self.to)


def defaults() -> dict[str, Any]:
    """Of [link-defaults]."""
    return {
        each.name: each.value_of(each.default) for each in LINK_DEFAULTS if each.default is not None
    }


def bridges_of(
    named: Mapping[str, dict[str, Any]],
    given: Mapping[str, Any],
    logins: Collection[str],
    discoveries: Mapping[str, Discovery],
    place: Path,
) -> dict[str, Bridge]:
    """`given`: [link-defaults]; `logins`: credentials of role "peering"."""
    found = {}
    for name, values in named.items():
        table = f"{place}: [{BRIDGES}.{name}]"
        whose = _login(values, logins, table)
        to = values["to"]
        if isinstance(to, Found) and (why := _unfound(to, whose, discoveries)):
            raise ConfigError(f"{place}: {BRIDGES}.{name}.to {why}")
        times, retry = link_times(values, dict(to.values), given, table)
        address = values["forwarding-address"] or values["queue"]
        found[name] = Bridge(
            name, values["queue"], paced(to, values), address, values["filter"],
            values["transformer"], whose, times, retry,
            discoveries[to.place] if isinstance(to, Found) else None,
        )  # fmt: skip
        if why := _unnamed(found[name]):
            raise ConfigError(f"{table}: {why}")
    return found


def _unnamed(bridge: Bridge) -> str:
    """Why no queue can have the name of the one that it ships."""
    size = len(bridge.ships.encode())
    if size <= NAME_BYTES_MAX:
        return ""
    whose = f"of a queue has at most {NAME_BYTES_MAX} bytes, and this one would have {size}"
    if bridge.ships == bridge.queue:
        return f"queue is too long: the name {whose}"
    return (
        "name and queue together are too long for $bridge.NAME.QUEUE, where messages wait that a "
        f"filter or a transformer has passed: the name {whose}"
    )


def _unfound(to: Found, whose: str, discoveries: Mapping[str, Discovery]) -> str:
    """Why nobody would be found that this bridge could connect to."""
    discovery = discoveries.get(to.place)
    if discovery is None:
        return f"names [discovery.{to.place}], which is not there"
    if discovery.credentials != whose:
        return (
            f"names [discovery.{to.place}], which hears what {discovery.credentials} signs, and "
            f"the bridge connects by {whose}: both need the same credentials"
        )
    return ""


def network_links_of(
    named: Mapping[str, dict[str, Any]],
    given: Mapping[str, Any],
    logins: Collection[str],
    bridges: Collection[str],
    place: Path,
    *,
    not_with: str = "",
) -> dict[str, NetworkLink]:
    """By the names that are shown: `static:` has one link to each of its members.

    `not_with`: what this broker has that they do not go with.
    """
    found = {}
    for name, values in named.items():
        table = f"{place}: [{of_networks.ROOT}.{name}]"
        whose = _login(values, logins, table)
        times, retry = link_times(values, dict(values["uri"].values), given, table)
        try:
            terms = of_networks.terms_of(name, values)
            services = dict(of_networks.services(name, values["uri"]))
        except of_networks.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
        for each, to in services.items():
            if each in found or each in bridges:
                raise ConfigError(f"{table}: another link, or a bridge, is called {each!r}")
            if isinstance(to, Members):
                to = with_rounds_asked_for(to)
            found[each] = NetworkLink(each, to, whose, terms, values["duplex"], times, retry)
    if found and not_with:
        raise ConfigError(f"{place}: [links.NAME] does not go with {not_with} yet")
    return found


def _login(values: Mapping[str, Any], known: Collection[str], table: str) -> str:
    named = values["credentials"]
    whose = named or (next(iter(known)) if len(known) == 1 else None)
    if whose is None or whose not in known:
        what = "says no credentials" if named is None else f"names [credentials.{named}]"
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise ConfigError(f'{table} {what}: of role "peering" {there}')
    return str(whose)


def link_times(
    values: Mapping[str, Any], said: Mapping[str, Any], given: Mapping[str, Any], table: str
) -> tuple[LinkTimes, float]:
    """`said`: by a uri of one broker, which may have them, too; and the pause after a refusal."""
    own = {each.name: said.get(each.name, values[each.name]) for each in LINK_DEFAULTS}
    own = {key: value for key, value in own.items() if value is not None}
    try:
        times = times_of(overridden(given, own))
    except Contradiction as error:
        raise ConfigError(f"{table}: {error}") from None
    return times, (defaults() | dict(given) | own)["refused-retry-interval"]
