"""Words that have a place in frames: roles, confirm levels, refusals, targets."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """What a link is for; credentials are for one of them."""

    CLIENT = "client"
    CLUSTER = "cluster"
    REPLICA = "replica"
    PEERING = "peering"
    WITNESS = "witness"
    ADMIN = "admin"
    VIEWER = "viewer"


class Standing(Enum):
    """What the broker at an end is at present."""

    LIVE = "live"
    BACKUP = "backup"
    STARTING = "starting"
    STOPPING = "stopping"
    NONE = "none"
    """It is no broker, but a program."""


class Level(Enum):
    """What a confirm says of a message."""

    SHM = "shm"
    REPLICATED = "replicated"
    DISK = "disk"
    DISK_AND_REPLICATED = "disk+replicated"


class Refusal(Enum):
    """Why the far end of a link does not welcome the near one."""

    CREDENTIALS = "credentials"
    PASSIVE = "passive"
    VHOST = "vhost"
    SELF = "self"
    DUPLICATE_NODE = "duplicate-node"
    STALE = "stale"
    VERSION = "version"
    BUSY = "busy"


class TargetKind(Enum):
    QUEUE = "queue"
    EXCHANGE = "exchange"
