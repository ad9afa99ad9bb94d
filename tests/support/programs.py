"""Programs on other hosts, as their broker shows them to the commands of its own host."""

from __future__ import annotations

from pathlib import Path

import shmbroker
from shmbroker.netbridge.broker.programs import disconnected, of_folder
from tests.cli.command import eventually


def is_shown_and_disconnected(folder: Path, vhost: str, name: str) -> None:
    """The one program of this name that the broker in this folder has; it may come again."""
    [row] = [each for each in of_folder(folder) if each["name"] == name]
    assert (row["attached"], row["role"], row["address"]) == (True, "client", "127.0.0.1")
    assert row["received_bytes"] > 0 < row["sent_bytes"]
    with shmbroker.connect(f"shm://{vhost}", name="operator") as broker:
        done = disconnected(broker, [folder], str(row["participant"]), "test", 5.0)
    assert (done.name, done.pid, done.has_left) == (name, None, True)
    began = row["connected_at"]
    eventually(lambda: began not in {each["connected_at"] for each in of_folder(folder)})
