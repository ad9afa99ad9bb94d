"""What a vhost consists of, changed for a program: of the worker, with the session's connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.carrier.reached import is_durable
from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.serving.answer import Answer
from shmbroker.netbridge.serving.naming import queue_named
from shmbroker.netbridge.wire.frame import Command
from shmbroker.netbridge.wire.words import Verb

Fields = dict[str, Any]
CHANGED: Final = Answer(in_journal=True)


def described(queue: Queue, **more: object) -> bytes:
    """What a program knows of a queue that it has opened."""
    handle = queue._queue
    return asked(
        name=queue.name, queue=queue.name, slots=queue.slots,
        durable=is_durable(handle),
        non_destructive=bool(lib.sb_is_non_destructive(handle)), **more,
    )  # fmt: skip


def settings_of(fields: Fields) -> Fields:
    return dict(named(fields, "settings", dict)) if "settings" in fields else {}


def declare(broker: Broker, fields: Fields) -> Answer:
    if "queue" in fields:
        name = queue_named(fields)
        if fields.get("opens"):
            opened = broker._queue_there(name) if fields.get("looks") else broker.queue(name)
            return Answer(body=described(opened))
        slots, settings = fields.get("slots"), settings_of(fields)
        queue = broker.declare_queue(name, slots=slots, **settings)
        return Answer(body=described(queue), in_journal=is_durable(queue._queue))
    name, opens = named(fields, "exchange"), bool(fields.get("opens"))
    if not opens:
        kind = named(fields, "kind")
        broker.declare_exchange(
            name, kind, alternate=fields.get("alternate"), replicate=fields.get("replicate")
        )
    return Answer(body=asked(kind=broker.exchange(name).kind), in_journal=not opens)


def bind(broker: Broker, fields: Fields) -> Answer:
    if fields.get("diverts"):
        exclusive = bool(fields.get("exclusive"))
        broker.divert(*_ends(fields), exclusive=exclusive, key=fields.get("key"))
    else:
        broker.bind(*_ends(fields), **_binding(fields))
    return CHANGED


def unbind(broker: Broker, fields: Fields) -> Answer:
    if fields.get("diverts"):
        broker.undivert(*_ends(fields), key=fields.get("key"))
    else:
        broker.unbind(*_ends(fields), **_binding(fields))
    return CHANGED


def _ends(fields: Fields) -> tuple[str, str]:
    return named(fields, "exchange"), queue_named(fields, "destination")


def _binding(fields: Fields) -> Fields:
    return {
        "key": fields.get("key", ""),
        "arguments": fields.get("arguments"),
        "match": fields.get("match", "all"),
        "to": fields.get("to"),
    }


def delete(broker: Broker, fields: Fields) -> Answer:
    force = bool(fields.get("force"))
    if "queue" in fields:
        broker.delete_queue(queue_named(fields), force=force)
    elif "exchange" in fields:
        broker.delete_exchange(named(fields, "exchange"), force=force)
    else:
        broker.unsubscribe(named(fields, "subscription"), force=force)
    return CHANGED


def settings(broker: Broker, fields: Fields) -> Answer:
    """No journal has them."""
    pattern = named(fields, "pattern")
    if fields.get("removes"):
        broker.remove_settings(pattern)
    else:
        broker.settings(pattern, **settings_of(fields))
    return Answer()


def declared(broker: Broker, command: Command) -> Answer:
    return DECLARING[command.verb](broker, told(command.body))


DECLARING: dict[Verb, Callable[[Broker, Fields], Answer]] = {
    Verb.DECLARE: declare,
    Verb.BIND: bind,
    Verb.UNBIND: unbind,
    Verb.DELETE: delete,
    Verb.SETTINGS: settings,
}


def subscription(broker: Broker, fields: Fields) -> Any:
    """By its name."""
    return broker.subscription(
        named(fields, "subscription"),
        exchange=named(fields, "exchange"),
        key=fields.get("key", ""),
        durable=bool(fields.get("durable")),
        shared=bool(fields.get("shared")),
        slots=fields.get("slots"),
        **settings_of(fields),
    )


def checked(verb: str, does: object, known: dict[str, Any]) -> Any:
    """What a verb does, by its name."""
    if does not in known:
        raise InvalidArgument(f"{verb}: {does!r:.40} is none of {', '.join(known)}")
    return known[str(does)]
