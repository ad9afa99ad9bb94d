"""Latency of a fleet, from the spools of its hosts: read, merged and judged by Spark.

Needs the extra `latency` and Java 17; `shmbroker latency` is its command.
"""

if __name__ != "shmbroker.perf.spark":
    raise ImportError(f"import this package as shmbroker.perf.spark, not as {__name__!r}")
