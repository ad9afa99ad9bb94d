"""An instance that serves programs on other hosts, as users make and run it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from sysconfig import get_path
from typing import Final

from shmbroker import vhost
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.creation import create
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.server import HOST, Place

COMMAND: Final = f"{get_path('scripts')}/shmbroker"
USER: Final = "bench"
PASSWORD: Final = "correct horse battery staple"


def vhost_of(place: Place) -> str:
    return place.folder.name


def serving(place: Place, stack: ExitStack, given: Mapping[str, object]) -> Program:
    """It listens at the place's port."""
    instance = place.folder / "instance"
    create(
        instance,
        {
            "instance.vhost": vhost_of(place),
            "acceptors.bench.uri": f"tcp://{HOST}:{place.port}",
            "acceptors.bench.roles": ["client"],
            f"credentials.{USER}.password": PASSWORD,
            **given,
        },
    )
    stack.callback(vhost.delete, vhost_of(place), force=True)
    return stack.enter_context(Program([COMMAND, "run", str(instance)], place.folder / "said"))


def is_served(place: Place) -> bool:
    """It is live, and then it begins to listen."""
    if status.read(place.folder / "instance").state != "live":
        return False
    try:
        socket.create_connection((HOST, place.port), 1).close()
    except OSError:
        return False
    return True


def uri_of(place: Place) -> str:
    return f"tcp://{USER}:{PASSWORD}@{HOST}:{place.port}"
