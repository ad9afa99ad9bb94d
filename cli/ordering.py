"""Orders to a broker that runs on this host, and what it shows."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

ANSWER_SECONDS = 10.0


def order(
    folder: Path, noun: str, given: Mapping[str, object], seconds: float = ANSWER_SECONDS
) -> str:
    """What came of it, if there is more to say.  ClickException: the broker does not answer, or
    says why it does not do that."""
    from shmbroker.ipc.instance import ordering

    wanted = {"noun": noun, "user": getpass.getuser(), **given}
    answer = ordering.asked(folder, wanted, seconds)
    if answer is None:
        raise click.ClickException(f"the broker in {folder} does not answer")
    if why := answer.get("why"):
        raise click.ClickException(str(why))
    return str(answer.get("said", ""))


def ask_to_show(folder: Path, noun: str) -> bool:
    """Whether it answers; if it hangs, what it has shown last stays."""
    from shmbroker.ipc.instance import ordering

    return ordering.asked_to_show(folder, noun)


def shown(folder: Path, file: str) -> dict[str, Any]:
    """What the broker has shown in this file of run/."""
    from shmbroker.ipc.instance import ordering

    return ordering.shown(folder, file)
