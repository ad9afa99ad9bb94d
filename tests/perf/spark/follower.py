"""python -m tests.perf.spark.follower SPOOL TABLES: takes what is there, file by file.

For tests that kill it; says `ready` when Spark has started.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shmbroker.perf.spark.intake import follow
from shmbroker.perf.spark.session import session
from tests.perf.spark.conftest import QUICK


def inside(folder: Path) -> dict[str, str]:
    """What Spark writes besides goes there: who is killed removes nothing."""
    folder.mkdir(exist_ok=True)
    java = "spark.driver.extraJavaOptions"
    return {"spark.local.dir": str(folder), java: f"{QUICK[java]} -Djava.io.tmpdir={folder}"}


def main(spool: str, place: str, files_per_batch: str) -> None:
    spark = session("local[2]", **QUICK | inside(Path(f"{place}.work")))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    day = 86_400.0
    follow(spark, spool, place, 60, day, None, int(files_per_batch))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
