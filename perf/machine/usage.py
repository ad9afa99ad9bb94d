"""What a process has used: processor time, and memory of its own."""

from __future__ import annotations

from pathlib import Path


def processor_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def memory(pid: int) -> int:
    """Bytes that are resident, without what it shares with others."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10
