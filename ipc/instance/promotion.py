"""The commands `on-promote`, which run before a backup becomes live and may refuse."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping

from shmbroker.ipc.instance.config.config import Config


def refusal(config: Config, epoch: int, node: bytes, old_live: str) -> str | None:
    """Why the first command that fails says no; None if all say yes."""
    environment = {
        **os.environ,
        "SHMBROKER_INSTANCE": config.name,
        "SHMBROKER_VHOST": config.vhost,
        "SHMBROKER_STORE": str(config.store),
        "SHMBROKER_EPOCH": str(epoch),
        "SHMBROKER_BROKER": f"shm://{config.vhost}",
        "SHMBROKER_NODE": node.hex(),
        "SHMBROKER_OLD_LIVE": old_live,
        "SHMBROKER_NEW_LIVE": config.name,
    }
    ends_at = time.monotonic() + config.on_promote_timeout
    for command in config.on_promote:
        if why := _refusal(config, command, environment, ends_at - time.monotonic()):
            return why if len(config.on_promote) == 1 else f"{command[0]}: {why}"
    return None


def _refusal(
    config: Config, command: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> str | None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            cwd=config.folder,
            timeout=max(seconds, 0),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it had not ended after {config.on_promote_timeout:g} s"
    except OSError as error:
        return f"it cannot be run: {error.strerror}"
    return None if done.returncode == 0 else f"it ended with {done.returncode}"
