"""What an admin does at the console is in the log, also if only a part of it was done."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from shmbroker.cli.console.application import Application
from shmbroker.cli.console.refusal import Refused
from shmbroker.cli.console.users import OF_USERS
from shmbroker.ipc.base.errors import InvalidArgument, SystemRefused
from shmbroker.ipc.instance.log import Log
from tests.cli.console.conftest import Site
from tests.cli.console.visitor import refused


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (SystemRefused("the disk is full"), ["the disk is full"]),
        (Refused(504, "unconfirmed", "it is in queue 'a'"), ["it is in queue 'a'"]),
        (Refused(400, "request", "name is text"), []),
        (InvalidArgument("there is a user eve already"), []),
        (OSError(28, "No space left on device", "x.toml"), ["x.toml: No space left on device"]),
        (None, [None]),
    ],
)
def test_what_fails_on_its_way_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, why: list[str | None]
) -> None:
    def does(_users: Any, _by: str, _given: Any) -> dict[str, Any]:
        if error is not None:
            raise error
        return {}

    async def received() -> dict[str, object]:
        return {"type": "http.request", "body": json.dumps({"name": "eve"}).encode()}

    monkeypatch.setitem(OF_USERS, "add-user", does)
    application = Application.__new__(Application)
    vars(application).update(_log=Log(tmp_path / "log", "one"), _users=None)
    scope = {"type": "http", "headers": [], "path_params": {"verb": "add-user"}}
    request = Request(scope, received)
    request.state.session = SimpleNamespace(user="olga")
    with suppress(SystemRefused, Refused, InvalidArgument, OSError):
        asyncio.run(application._do(request))
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line.get("why") for line in lines] == why
    told = {(line["event"], line["verb"], line["user"], line["name"]) for line in lines}
    assert told <= {("audit", "console add-user", "olga", "eve")}


def test_what_the_system_refuses_is_told_and_in_the_log(own_site: Site) -> None:
    own_site.start()
    admin = own_site.visitor()
    blocked = own_site.folder / f".shmbroker.toml-{own_site.pid}"
    blocked.mkdir()  # under this name it is written
    given = {"name": "eve", "roles": ["viewer"], "password": "a horse in spring"}
    answer = admin.post("/api/do/add-user", given)
    refused(answer, 409, "SystemRefused")
    assert str(blocked) in answer.json["why"]
    [line] = own_site.lines("audit")
    assert (line["verb"], line["name"], line["why"]) == (
        "console add-user", "eve", answer.json["why"],
    )  # fmt: skip
