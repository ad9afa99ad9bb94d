"""Message groups: the property that a message belongs to one by, and which consumer has which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import NOT_FOUND
from shmbroker.core.layout import BUCKETS, GROUP_BYTES_MAX
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import InvalidArgument, error_for

if TYPE_CHECKING:
    from shmbroker.ipc.message.copied import CopiedMessage

GROUP = "JMSXGroupID"


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group that has messages, or a consumer that has none of it; or a single active consumer."""

    group: str | None
    """None: other groups that this consumer has, without messages; or all messages of the queue."""
    participant: int | None
    """Whose it is; None: nobody's so far."""
    waiting: int
    taken: int


def group_bytes(group: str) -> bytes:
    """A group's name for C; InvalidArgument if it is none."""
    if isinstance(group, str):
        encoded = group.encode(errors="surrogatepass")
        if 1 <= len(encoded) <= GROUP_BYTES_MAX:
            return encoded
    raise InvalidArgument(f"a group is a text of 1 to {GROUP_BYTES_MAX} bytes, not {group!r}")


def grouped(properties: Mapping[str, Any] | None, group: str | None) -> Mapping[str, Any] | None:
    """The properties of a message of this group."""
    if group is None:
        return properties
    group_bytes(group)
    if properties is None:
        return {GROUP: group}
    if isinstance(properties, Mapping) and properties.get(GROUP, group) != group:
        raise InvalidArgument(f"{GROUP} is {properties[GROUP]!r}, and the group is {group!r}")
    return {**properties, GROUP: group}


def group_of(properties: Mapping[str, Any]) -> str | None:
    group = properties.get(GROUP)
    return group if isinstance(group, str) and group else None


def groups_of(queue: Any, messages: Iterable[CopiedMessage]) -> list[GroupInfo]:
    """Which groups there are, or who is active, in a queue of which these are the messages."""
    owners = ffi.new("int64_t[]", BUCKETS)
    count = lib.sb_group_owners(queue, owners, BUCKETS)
    if count < 0:
        raise error_for(count, "looking at groups", ffi.errno, detail_of(count))
    if count == 0:
        return []
    is_single = lib.sb_group_bucket(queue, b"-", 1) == NOT_FOUND
    waiting: Counter[str | None] = Counter()
    taken: Counter[str | None] = Counter()
    for message in messages:
        group = None if is_single else message.group
        if is_single or group is not None:
            (taken if message.is_taken else waiting)[group] += 1
    if is_single:
        return [GroupInfo(None, owners[0] or None, waiting[None], taken[None])]
    found, named = [], set()
    for group in sorted(each for each in waiting.keys() | taken.keys() if each is not None):
        encoded = group.encode(errors="surrogatepass")
        bucket = lib.sb_group_bucket(queue, encoded, len(encoded))
        if bucket >= 0:
            named.add(bucket)
            owner = owners[bucket] or None
            found.append(GroupInfo(group, owner, waiting[group], taken[group]))
    idle = {owners[each] for each in range(count) if each not in named and owners[each]}
    return found + [GroupInfo(None, owner, 0, 0) for owner in sorted(idle)]
