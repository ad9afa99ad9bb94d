"""Words that have a place in frames: roles, confirm levels, refusals, targets, verbs."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Word(Enum):
    __hash__ = object.__hash__  # that of Enum is of its name, and written in Python


class Role(Word):
    """What a link is for; credentials are for one of them."""

    CLIENT = "client"
    CLUSTER = "cluster"
    REPLICA = "replica"
    PEERING = "peering"
    WITNESS = "witness"
    ADMIN = "admin"
    VIEWER = "viewer"


OF_PROGRAMS: Final = frozenset({Role.CLIENT, Role.ADMIN, Role.VIEWER})
"""Whose links carry a session."""
PAIR_LINK: Final = "the other one of a pair"
"""The name of the link, of role peering, on which the brokers of a pair talk."""
QUEUES_LINK: Final = "queues that follow"
"""How the name of a link of role replica begins, by which queues follow those of another one."""


NETWORK_LINK: Final = "network/"
"""How the name of a link of role peering begins, by which a broker fetches messages from another
one; no bridge has a slash in its name."""


AGENT_LINK: Final = "mta/"
"""The same of a link of a message transfer agent."""


FORWARDING_LINK: Final = "forwarding"
"""How the name of a link of role cluster begins, by which messages go to another node."""


RETURNED: Final = "no binding takes it there"
"""Why a message is rejected that was published as mandatory, or immediate."""


def is_of_network(role: Role | None, link: str) -> bool:
    return role is Role.PEERING and link.startswith(NETWORK_LINK)


def is_of_agent(role: Role | None, link: str) -> bool:
    return role is Role.PEERING and link.startswith(AGENT_LINK)


class Standing(Word):
    """What the broker at an end is at present."""

    LIVE = "live"
    BACKUP = "backup"
    STARTING = "starting"
    STOPPING = "stopping"
    NONE = "none"
    """It is no broker, but a program."""


class Level(Word):
    """What a confirm says of a message."""

    SHM = "shm"
    REPLICATED = "replicated"
    DISK = "disk"
    DISK_AND_REPLICATED = "disk+replicated"


class Refusal(Word):
    """Why the far end of a link does not welcome the near one."""

    CREDENTIALS = "credentials"
    PASSIVE = "passive"
    VHOST = "vhost"
    SELF = "self"
    DUPLICATE_NODE = "duplicate-node"
    STALE = "stale"
    VERSION = "version"
    BUSY = "busy"


class ReplicaAck(Word):
    """When a replica says that it has a frame."""

    RECEIVED = "received"
    """It is in a file: it outlives the process, and not the machine."""
    DISK = "disk"


class TargetKind(Word):
    QUEUE = "queue"
    EXCHANGE = "exchange"
    NODE = "node"
    """Each message says which queue of the node it is for."""


class Demand(Word):
    """What a call wants to be confirmed of its messages."""

    EFFECTIVE = ""
    """What the queue has at the moment."""
    SHM = "shm"
    REPLICATED = "replicated"
    DISK = "disk"
    DISK_AND_REPLICATED = "disk+replicated"


class Verb(Word):
    """What a program asks of its session."""

    PUBLISH = "publish"
    PUBLISH_BEHIND = "publish-behind"
    """Refused as well if the publish with the numbers just below was: both are of one call."""
    DECIDED = "decided"
    """These numbers of a producer will not come again."""
    SCHEDULE = "schedule"
    REQUEST = "request"
    REPLY = "reply"
    GET = "get"
    ACK = "ack"
    GIVE_BACK = "give-back"
    REJECT = "reject"
    BROWSE = "browse"
    COMMIT = "commit"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    TEMPORARY_QUEUE = "temporary-queue"
    LEAVE = "leave"
    """Without this consumer, producer or temporary queue from now on."""
    DECLARE = "declare"
    BIND = "bind"
    UNBIND = "unbind"
    DELETE = "delete"
    SETTINGS = "settings"
    OPERATE = "operate"
    """What an operator does with a queue: purge, move, pause, ..."""
    CANCEL_SCHEDULED = "cancel-scheduled"
    TRANSACTIONS = "transactions"
    """What is acknowledged in those that are open; repeated, to have it in hand again."""
    ORDER = "order"
    """What the process of the broker is to do: `shmbroker ha` of queue replicas."""
    LOOK = "look"
    """Statistics, lists, and whatever else changes nothing."""
    END = "end"
    """The session, in good order."""
