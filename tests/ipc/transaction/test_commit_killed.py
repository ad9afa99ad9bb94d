"""Two programs transfer money between accounts and are killed at any moment: the sum stays.

Each round kills both, one some time after the other, which repairs what the first has left while it
goes on with its own transfers; then a third repairs, and counts.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

import shmbroker
from tests.ipc.transaction.test_commit_stopped import series_held
from tests.support.compiler import NATIVE, compile_program
from tests.support.killed import KILLS

ACCOUNTS, PURSES, COINS, SLOTS = 4, 3, 1000, 8
UP_SECONDS = 0.03


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = NATIVE / "transferrer.c"
    return compile_program(source, tmp_path_factory.mktemp("transferrer") / "transferrer")


def purses(accounts: list[shmbroker.Queue]) -> list[int]:
    found = []
    for account in accounts:
        assert account.statistics().taken == 0
        found += [int.from_bytes(each.body, "little", signed=True) for each in account.browse()]
    return found


def test_the_sum_never_changes(program: Path, vhost: str) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    with shmbroker.connect(f"shm://{vhost}") as auditor:
        accounts = [
            # however often a purse comes back, it is not to be dropped as a dead letter
            auditor.declare_queue(f"account{each}", slots=SLOTS, max_deliveries=None)
            for each in range(ACCOUNTS)
        ]
        for account in accounts:
            account.publish_many([COINS.to_bytes(8, "little")] * PURSES)
        moved = 0
        for turn in range(-(-KILLS // 2)):
            before = [each.statistics().published for each in accounts]
            running = [
                subprocess.Popen(
                    [str(program), vhost, str(ACCOUNTS), str(chance.randrange(1 << 30))]
                )
                for _ in range(2)
            ]
            for each in running:
                time.sleep(chance.uniform(0.2, 1) * UP_SECONDS)
                assert each.poll() is None, (seed, turn, each.returncode)
                each.kill()
                each.wait()
            auditor.repair()
            found = purses(accounts)
            assert (len(found), sum(found)) == (ACCOUNTS * PURSES, ACCOUNTS * PURSES * COINS), (
                f"seed {seed}, turn {turn}: {found}"
            )
            assert len(auditor.participants()) == 1
            assert series_held(vhost) == 0
            after = [each.statistics().published for each in accounts]
            moved += sum(after) - sum(before)
        assert moved > 2 * KILLS, "they had no time to do anything"
