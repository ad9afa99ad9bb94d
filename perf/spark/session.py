"""A Spark session: Java is found or the message says how to get it; workers are this Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
HOW = "sudo apt-get install default-jre-headless (or set JAVA_HOME)"


class NoSpark(Exception):
    """Spark cannot run here; the message says what to install."""


def java() -> Path:
    """The one that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").is_file():
        raise NoSpark(f"JAVA_HOME is {home}, which has no bin/java: set it right, or unset it")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    if not found:
        raise NoSpark(f"Spark needs Java {JAVA} or newer, and there is none: {HOW}")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60)
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if not version or int(version[1]) < JAVA:
        what = version[1] if version else "of an unknown version"
        raise NoSpark(f"Spark needs Java {JAVA} or newer, {found} is {what}: {HOW}")
    return Path(found)


def session(master: str | None = None, **settings: str) -> SparkSession:
    """The session of spark-submit, or one on this machine, with all its cores."""
    try:
        from pyspark.sql import SparkSession

        from shmbroker.perf.spark.source import Spool
    except ImportError as error:
        raise NoSpark(f"{error.name} is missing: pip install 'shmbroker[latency]'") from None
    if "PYSPARK_GATEWAY_PORT" not in os.environ and SparkSession.getActiveSession() is None:
        java()
        master = master or "local[*]"
    if master and master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    building = SparkSession.builder.appName("shmbroker latency")
    if master:
        building = building.master(master)
    for name, value in (DEFAULTS | settings).items():
        building = building.config(name, value)
    spark = building.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Spool)
    return spark


DEFAULTS = {
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
}
"""What we rely on.  Names with dots are given to `session` by ** of a dict."""
