"""Attempts to log in: after some that failed, the next one from there has to wait.

By the address that they come from, and by the user that they name, with a shorter limit: whoever
guesses from many addresses is slowed, and whose name is used so can still log in between.  Pure: it
is told the time.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

FREE: Final = 3
"""So many may fail without a pause."""
ADDRESS_PAUSE_MAX: Final = 60.0
USER_PAUSE_MAX: Final = 5.0
PLACES_MAX: Final = 1024
FORGOTTEN_SECONDS: Final = 900.0
NETWORK_BITS: Final = 64
"""Of IPv6: a host has all addresses of such a network, and may come from another one each time."""


@dataclass(slots=True)
class _Failures:
    count: int
    at: float
    """The last one."""

    def until(self, most: float) -> float:
        if self.count < FREE:
            return 0.0
        return self.at + min(most, 2.0 ** min(self.count - FREE, 16))


class Attempts:
    def __init__(self) -> None:
        self._of: dict[tuple[str, str], _Failures] = {}

    def pause(self, address: str, user: str | None, now: float) -> float:
        """Seconds until this one may be tried; 0: now.  `user`: None, nobody is named."""
        ends = 0.0
        for key, most in _keys(address, user):
            found = self._of.get(key)
            if found is not None and now - found.at < FORGOTTEN_SECONDS:
                ends = max(ends, found.until(most))
        return max(0.0, ends - now)

    def failed(self, address: str, user: str | None, now: float) -> None:
        for key, _ in _keys(address, user):
            found = self._of.pop(key, None)
            is_new = found is None or now - found.at >= FORGOTTEN_SECONDS
            count = 1 if is_new or found is None else found.count + 1
            self._of[key] = _Failures(count, now)  # the last one in order
            while len(self._of) > PLACES_MAX:
                del self._of[next(iter(self._of))]

    def succeeded(self, address: str, user: str | None) -> None:
        for key, _ in _keys(address, user):
            self._of.pop(key, None)


def source_of(address: str) -> str:
    """Whoever comes from there is one, as far as anybody can see."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, ipaddress.IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, NETWORK_BITS), strict=False))


def _keys(address: str, user: str | None) -> list[tuple[tuple[str, str], float]]:
    of_address = (("address", address), ADDRESS_PAUSE_MAX)
    return [of_address] if user is None else [of_address, (("user", user), USER_PAUSE_MAX)]
