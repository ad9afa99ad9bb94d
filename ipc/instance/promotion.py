"""The command `on-promote`, which runs before a backup becomes live and may refuse."""

from __future__ import annotations

import os
import subprocess

from shmbroker.ipc.instance.config.config import Config


def refusal(config: Config, epoch: int) -> str | None:
    """Why the command says no; None if it says yes."""
    environment = {
        **os.environ,
        "SHMBROKER_INSTANCE": config.name,
        "SHMBROKER_VHOST": config.vhost,
        "SHMBROKER_STORE": str(config.store),
        "SHMBROKER_EPOCH": str(epoch),
    }
    try:
        done = subprocess.run(
            config.on_promote,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            cwd=config.folder,
            timeout=config.on_promote_timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it had not ended after {config.on_promote_timeout:g} s"
    except OSError as error:
        return f"it cannot be run: {error.strerror}"
    return None if done.returncode == 0 else f"it ended with {done.returncode}"
