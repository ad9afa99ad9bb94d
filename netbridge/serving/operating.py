"""What an operator does with a queue: of the worker, with the session's connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.remote.body import asked, refusal, told
from shmbroker.netbridge.serving.answer import Answer
from shmbroker.netbridge.serving.declaring import checked
from shmbroker.netbridge.serving.naming import queue_named
from shmbroker.netbridge.wire.frame import Command

Fields = dict[str, Any]


def _moved(queue: Queue, fields: Fields) -> Answer:
    """Without waiting for room: others wait for the worker."""
    other = queue._broker.queue(queue_named(fields, "other"))
    copies = fields["does"] == "copy_to"
    limit, selector = fields.get("limit"), fields.get("selector")
    passed = pass_over(queue, other, limit, selector, 0, copies=copies)
    if copies and passed.error is not None:
        code, text = refusal(passed.error)
        return Answer(code, passed.messages, text)
    return Answer(value=passed.messages, body=asked(is_full=passed.is_full))


def _retried(queue: Queue, fields: Fields) -> Answer:
    retried = queue.retry(fields.get("limit"))
    return Answer(value=retried.sent, body=asked(stayed=retried.stayed))


def _paused(queue: Queue, fields: Fields) -> Answer:
    (queue.pause if fields["does"] == "pause" else queue.resume)()
    return Answer()


DOES: dict[str, Callable[[Queue, Fields], Answer]] = {
    "purge": lambda queue, _: Answer(value=queue.purge()),
    "expire": lambda queue, _: Answer(value=queue.expire()),
    "let_go": lambda queue, fields: Answer(value=queue.let_go(fields.get("group"))),
    "pause": _paused,
    "resume": _paused,
    "move_to": _moved,
    "copy_to": _moved,
    "retry": _retried,
}


def operated(broker: Broker, command: Command) -> Answer:
    fields = told(command.body)
    does = checked("operate", fields.get("does"), DOES)
    answer: Answer = does(broker.queue(queue_named(fields)), fields)
    return answer


def cancelled(broker: Broker, command: Command) -> Answer:
    queue = broker.queue(queue_named(told(command.body)))
    return Answer(code=int(queue.cancel_scheduled(command.value)))
