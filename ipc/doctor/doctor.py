"""Problems of a host that runs shmbroker: pure functions that return findings.

What they look at is passed in, so that a program can ask about another folder, and a test about
another machine; `examine` asks about this one.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from time import time

from shmbroker.ipc.doctor.finding import Finding
from shmbroker.ipc.doctor.stale import SHM, boot_hash, files_in_use, stale_segments

MIB = 1 << 20

SHM_BYTES_MIN = 256 * MIB
"""The arena of one vhost, as it is made if nobody says otherwise."""

SHM_FREE_PERCENT_MIN = 10
FILES_MIN = 1024
MEMLOCK_BYTES_MIN = 8 * MIB
"""What systemd gives everybody; less means that somebody has lowered it."""

MAPS_MIN = 65530
"""The kernel's own default.  A queue that is open costs a map or two."""

SYSTEM_UID_MAX = 999
LOGIND = ("etc/systemd/logind.conf", "etc/systemd/logind.conf.d", "run/systemd/logind.conf.d",
          "usr/lib/systemd/logind.conf.d")  # fmt: skip


def examine() -> list[Finding]:
    """All findings about this host, for this user."""
    found = list(stale_segments(SHM, time(), files_in_use(), boot_hash()))
    usage = os.statvfs(SHM)
    block = usage.f_frsize
    found += shared_memory(usage.f_blocks * block, usage.f_bavail * block)
    found += remove_ipc(Path("/"), os.getuid())
    found += open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    found += locked_memory(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    found += memory_maps(int(Path("/proc/sys/vm/max_map_count").read_text()))
    return found


def shared_memory(size: int, free: int) -> Iterator[Finding]:
    """/dev/shm is large enough for a vhost, and not nearly full."""
    if size < SHM_BYTES_MIN:
        yield Finding(
            "warning",
            "/dev/shm",
            f"it has {size // MIB:,} MiB in all, the arena of one vhost is {SHM_BYTES_MIN // MIB}",
            "mount -o remount,size=1g /dev/shm; of a container: docker run --shm-size=1g; "
            "or make smaller vhosts: shmbroker vhost create NAME --arena 16MiB",
        )
    if free * 100 < size * SHM_FREE_PERCENT_MIN:
        yield Finding(
            "warning",
            "/dev/shm",
            f"it is nearly full: {free // MIB:,} of {size // MIB:,} MiB are left",
            "see what is large by `du -a /dev/shm | sort -n`; delete vhosts that nobody needs",
        )


def logind_settings(root: Path) -> Iterator[str]:
    """The texts of logind's configuration, the one that counts last."""
    for place in reversed(LOGIND[1:]):
        for path in sorted((root / place).glob("*.conf")):
            yield readable(path)
    main, drop_ins = readable(root / LOGIND[0]), root / LOGIND[1]
    yield main
    for path in sorted(drop_ins.glob("*.conf")):
        yield readable(path)


def readable(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def remove_ipc(root: Path, uid: int) -> Iterator[Finding]:
    """logind removes what a user has in /dev/shm when he logs out, unless told not to."""
    if uid <= SYSTEM_UID_MAX or not (root / "run/systemd/system").is_dir():
        return
    values = re.findall(
        r"^\s*RemoveIPC\s*=\s*(\w+)", "\n".join(logind_settings(root)), re.MULTILINE
    )
    if not values or values[-1].lower() not in ("no", "false", "0", "off"):
        yield Finding(
            "warning",
            "RemoveIPC of systemd-logind",
            f"when user {uid} logs out for the last time, all its segments are removed from "
            "/dev/shm, vhosts and messages with them",
            "loginctl enable-linger; or RemoveIPC=no in /etc/systemd/logind.conf and "
            "systemctl restart systemd-logind; or run as a system user",
        )


def open_files(soft: int, hard: int) -> Iterator[Finding]:
    if soft == resource.RLIM_INFINITY or soft >= FILES_MIN:
        return
    raisable = hard == resource.RLIM_INFINITY or hard >= FILES_MIN
    yield Finding(
        "warning",
        "RLIMIT_NOFILE",
        f"a process may have {soft:,} files open; one with many queues needs {FILES_MIN:,}",
        f"ulimit -n {FILES_MIN}"
        if raisable
        else f"LimitNOFILE={FILES_MIN} in the service, or nofile in /etc/security/limits.conf",
    )


def locked_memory(soft: int) -> Iterator[Finding]:
    if soft == resource.RLIM_INFINITY or soft >= MEMLOCK_BYTES_MIN:
        return
    yield Finding(
        "note",
        "RLIMIT_MEMLOCK",
        f"a process may lock {soft // 1024:,} KiB into memory: under pressure the system swaps "
        "segments out, and a message may then take milliseconds",
        "LimitMEMLOCK=infinity in the service, or memlock in /etc/security/limits.conf",
    )


def memory_maps(most: int) -> Iterator[Finding]:
    if most < MAPS_MIN:
        yield Finding(
            "warning",
            "vm.max_map_count",
            f"a process may map {most:,} pieces of memory, and each open queue is one or two",
            f"sysctl vm.max_map_count={MAPS_MIN}; to keep it: a file in /etc/sysctl.d",
        )
