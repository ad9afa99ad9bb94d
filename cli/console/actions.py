"""What an admin does with queues, exchanges and programs: publish, move, bind, disconnect.

Each is done by a connection of its own, as the verbs of the command line do it, and never waits for
long: a full queue, or a broker that hangs, is told.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli.console.refusal import Refused
from shmbroker.cli.properties import parse_value
from shmbroker.cli.setting import NONE
from shmbroker.ipc.base.errors import Unconfirmed
from shmbroker.ipc.instance.brokers import folders_of
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.settings.setting import BY_NAME
from shmbroker.netbridge.broker.programs import disconnected

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

SECONDS: Final = 5.0
LEAVES_SECONDS: Final = 2.0
"""A program that waits finds out in a tenth of that."""
Given = Mapping[str, Any]


def text(given: Given, name: str) -> str:
    found = given.get(name)
    if not isinstance(found, str) or not found:
        raise Refused(400, "request", f"{name} is text")
    return found


def _count(given: Given) -> int | None:
    found = given.get("count")
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise Refused(400, "request", "count is a number of messages, from 1")
    return found


def _body(given: Given) -> bytes:
    body, encoding = given.get("body", ""), given.get("encoding", "utf-8")
    if not isinstance(body, str) or encoding not in ("utf-8", "base64"):
        raise Refused(400, "request", 'body is text, and encoding "utf-8" or "base64"')
    try:
        return body.encode() if encoding == "utf-8" else b64decode(body, validate=True)
    except ValueError as error:
        raise Refused(400, "request", f"body is no {encoding}: {error}") from None


def _property(_name: str, value: str) -> object:
    return parse_value(value)


def _setting(name: str, value: str) -> object:
    """As on the command line: `none`, which for some is one of their words."""
    is_word = name in BY_NAME and BY_NAME[name].kind == "choice"
    return None if value == NONE and not is_word else parse_value(value)


def _assigned(given: Given, name: str, value_of: Callable[[str, str], object]) -> Any:
    """An object, or lines as people write them (n=3): JavaScript would change numbers."""
    found = given.get(name)
    if not isinstance(found, str):
        return found
    pairs = [line.partition("=") for line in found.split("\n") if line.strip()]
    for before, equals, _ in pairs:
        if not before.strip() or not equals:
            raise Refused(400, "request", f"a line of {name} is NAME=VALUE, not {before!r:.100}")
    lines = ((before.strip(), value.strip()) for before, _, value in pairs)
    return {before: value_of(before, value) for before, value in lines}


def _options(given: Given) -> dict[str, Any]:
    """Those of a publish that are given; their values are checked there."""
    found: dict[str, Any] = {}
    for name, kind in (("key", str), ("group", str), ("priority", int), ("properties", dict)):
        value = _assigned(given, name, _property) if kind is dict else given.get(name)
        if value is None or value in ("", {}):
            continue
        if type(value) is not kind:
            raise Refused(400, "request", f"{name} is not {value!r:.100}")
        found[name] = value
    ttl = given.get("ttl")
    if ttl is not None:
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < 1e9:
            raise Refused(400, "request", "ttl is a time in seconds")
        found["ttl"] = float(ttl)
    return found


def publish(broker: Broker, given: Given) -> dict[str, Any]:
    queue = broker.queue(text(given, "queue"))
    try:
        position = queue.publish(_body(given), timeout=SECONDS, **_options(given))
    except Unconfirmed:
        raise Refused(
            504, "unconfirmed", f"it is in queue {queue.name!r}, and not confirmed after "
            f"{SECONDS:g} s: its broker may hang; to publish it again would double it"
        ) from None  # fmt: skip
    return {"position": position}


def move(broker: Broker, given: Given) -> dict[str, Any]:
    source, target = text(given, "queue"), text(given, "to")
    if source == target:
        raise Refused(400, "request", "messages are moved to another queue")
    wanted = given.get("selector")
    selector = Selector(wanted) if isinstance(wanted, str) and wanted else None
    queue, other = broker.queue(source), broker.queue(target)
    moved = queue.move_to(other, _count(given), selector, timeout=0)
    return {"messages": moved}


def retry(broker: Broker, given: Given) -> dict[str, Any]:
    done = broker.queue(text(given, "queue")).retry(_count(given))
    return {"messages": done.sent, "stayed": done.stayed}


def purge(broker: Broker, given: Given) -> dict[str, Any]:
    return {"messages": broker.queue(text(given, "queue")).purge()}


def pause(broker: Broker, given: Given) -> dict[str, Any]:
    broker.queue(text(given, "queue")).pause()
    return {}


def resume(broker: Broker, given: Given) -> dict[str, Any]:
    broker.queue(text(given, "queue")).resume()
    return {}


def declare(broker: Broker, given: Given) -> dict[str, Any]:
    durable = given.get("durable", False)
    if not isinstance(durable, bool):
        raise Refused(400, "request", "durable is true or false")
    name = text(given, "queue")
    if durable:
        broker.declare_queue(name, durable=True)
    else:
        broker.declare_queue(name)  # as its pattern says
    return {}


def delete(broker: Broker, given: Given) -> dict[str, Any]:
    """InUse if a program has it open."""
    broker.delete_queue(text(given, "queue"))
    return {}


def declare_exchange(broker: Broker, given: Given) -> dict[str, Any]:
    broker.declare_exchange(text(given, "exchange"), text(given, "kind"))
    return {}


def delete_exchange(broker: Broker, given: Given) -> dict[str, Any]:
    """InUse if it has bindings."""
    broker.delete_exchange(text(given, "exchange"))
    return {}


def _key(given: Given) -> str:
    return text(given, "key") if given.get("key") else ""


def bind(broker: Broker, given: Given) -> dict[str, Any]:
    broker.bind(text(given, "exchange"), text(given, "queue"), _key(given))
    return {}


def unbind(broker: Broker, given: Given) -> dict[str, Any]:
    broker.unbind(text(given, "exchange"), text(given, "queue"), _key(given))
    return {}


def settings(broker: Broker, given: Given) -> dict[str, Any]:
    """Of queues that are declared later."""
    wanted = _assigned(given, "settings", _setting)
    if not isinstance(wanted, dict) or not wanted:
        raise Refused(400, "request", 'settings is an object, as in {"max_deliveries": 3}')
    try:
        broker.settings(text(given, "pattern"), **wanted)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(400, "request", f"settings {wanted!r:.200}: {error}") from None
    return {}


def remove_settings(broker: Broker, given: Given) -> dict[str, Any]:
    broker.remove_settings(text(given, "pattern"))
    return {}


def disconnect(broker: Broker, given: Given) -> dict[str, Any]:
    """`id`: a participant's number, or how the session of a program on another host begins."""
    [ours] = [each.name for each in broker.participants() if each.id == broker.participant]
    number = given.get("id")
    who = str(number) if type(number) is int else text(given, "id")
    done = disconnected(broker, folders_of(broker), who, ours, LEAVES_SECONDS)
    return {"name": done.name, "left": done.has_left, "process": done.pid}


ACTIONS: Final[dict[str, Callable[[Broker, Given], dict[str, Any]]]] = {
    "publish": publish,
    "move": move,
    "retry": retry,
    "purge": purge,
    "pause": pause,
    "resume": resume,
    "declare": declare,
    "delete": delete,
    "declare-exchange": declare_exchange,
    "delete-exchange": delete_exchange,
    "bind": bind,
    "unbind": unbind,
    "settings": settings,
    "remove-settings": remove_settings,
    "disconnect": disconnect,
}
