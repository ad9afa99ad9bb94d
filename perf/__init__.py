"""The benchmark harness: topologies, peers (ours and raw limits among them), and the report.

Nothing below this floor may import it. Start it with ``python -m shmbroker.perf``.
"""

if __name__ != "shmbroker.perf":
    raise ImportError(f"import this package as shmbroker.perf, not as {__name__!r}")
