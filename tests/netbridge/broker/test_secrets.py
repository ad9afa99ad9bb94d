"""Nobody sees a password: not in logs, on command lines, in JSON, in the table, nor in a core."""

from __future__ import annotations

import json
from pathlib import Path

from shmbroker.netbridge.broker.table import path_of
from tests.netbridge.broker.conftest import PASSWORD, Two
from tests.netbridge.broker.test_owned import run_cli


def test_a_password_stands_in_no_log_no_json_and_no_command_line(two: Two) -> None:
    two.started()
    two.becomes("up")
    two.write(two.near, **{"credentials.site.password": PASSWORD + " no more"})
    two.reload(two.near)
    two.becomes("refused")
    seen = [path_of(two.near_vhost).read_bytes()]
    for run in (two.near, two.far):
        assert run.process is not None
        proc = Path(f"/proc/{run.process.pid}")
        seen += [(proc / "cmdline").read_bytes(), (proc / "environ").read_bytes()]
        kept = int((proc / "coredump_filter").read_text(), 16)
        assert kept & 0b1101111 == 0, "a core has no memory but headers of libraries"
        seen += [(run.folder / "log" / "shmbroker.log").read_bytes(), run.errors().encode()]
        seen += [each.read_bytes() for each in (run.folder / "run").iterdir() if each.is_file()]
        seen.append(run_cli(["config", "explain", str(run.folder), "--json"]).output.encode())
    seen.append(run_cli(["link", "list", "--json", "--vhost", two.near_vhost]).output.encode())
    assert json.loads(seen[-1])[0]["name"] == "to-far"
    assert not [each for each in seen if PASSWORD.encode() in each]
