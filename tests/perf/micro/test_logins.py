"""The flood of failed logins, short: refused, logged, nothing else."""

from __future__ import annotations

import re
import subprocess
import sys


def test_some_thousands_are_refused_and_those_who_know_get_in() -> None:
    words = ["--logins", "3000", "--addresses", "6"]
    program = [sys.executable, "-m", "shmbroker.perf.micro.logins", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"are answered: (\d+) with 401, ([\d,]+) with 429\n", done.stdout)
    assert told is not None, done.stdout
    compared, slowed = (int(each.replace(",", "")) for each in told.groups())
    assert compared + slowed == 3000
    assert compared < 300, "of each address some, with longer and longer pauses"
    assert "let somebody from elsewhere log in after" in done.stdout
