"""The queues that a configuration lists, and settings by pattern: whoever becomes live makes them.

What goes wrong is in the log: a live serves without them.  Queues that are there are not touched.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from queue import SimpleQueue

from shmbroker.ipc.base.errors import ConnectionClosed, Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.instance import patterned
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.vhost import vhost as vhosts

_GIVEN: SimpleQueue[tuple[Config, Log]] = SimpleQueue()
"""A thread for each, which takes the oldest: a reload is carried out behind those before it."""
_ONE_AT_A_TIME = threading.Lock()
"""A reload may come while the last one is being carried out."""


def make_in_background(config: Config, log: Log) -> None:
    if config.queues or config.settings or (config.store / patterned.FILE).exists():
        _GIVEN.put((config, log))
        threading.Thread(target=_make_next, name="queues", daemon=True).start()


def reloaded(former: Config, config: Config, log: Log) -> None:
    """Of a live, which has made the queues that are listed: who has deleted one since meant it."""
    if config.settings != former.settings:
        make_in_background(replace(config, queues=()), log)


def _make_next() -> None:
    with _ONE_AT_A_TIME:
        _make(*_GIVEN.get())


def _make(config: Config, log: Log) -> None:
    try:
        with connect(f"shm://{config.vhost}", name=f"queues of {config.name}"[:56]) as broker:
            _put(broker, config, log)
            known = set(broker._catalog.queue_names().values())
            is_durable = vhosts.has_journaler(config.vhost)
            for name in config.queues:
                if name not in known:
                    _make_one(broker, name, log, is_durable=is_durable)
    except (Error, OSError) as error:
        log.write("warning", why=f"instance.queues: {told(error)}")


def _put(broker: Broker, config: Config, log: Log) -> None:
    """A pattern that is refused keeps no queue from being made, nor does a full disk."""
    try:
        for pattern in patterned.put(broker, config.settings, config.store):
            log.write("settings", pattern=pattern, settings=dict(config.settings.get(pattern, {})))
    except ConnectionClosed:
        raise
    except (Error, OSError) as error:
        log.write("warning", why=f"queues: {told(error)}")


def _make_one(broker: Broker, name: str, log: Log, *, is_durable: bool) -> None:
    """One that cannot be made, for its pattern say, stops no other."""
    try:
        broker.declare_queue(name, durable=is_durable)
    except ConnectionClosed:
        raise
    except Error as error:
        log.write("warning", why=f"instance.queues: {told(error)}")
    else:
        log.write("queue made", queue=name, durable=is_durable)
