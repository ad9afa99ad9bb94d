"""make demo: a C producer, a Numba consumer and a Python consumer on one ring, with figures.

The two consumers compete: each message goes to one of them.  At the end the sums must agree.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import shmbroker
from shmbroker import Ring

HERE = Path(__file__).parent
COUNT = 3_000_000
NAME = f"demo-{os.getpid()}"


def compiled_producer(folder: Path) -> Path:
    library = Path(shmbroker.__file__).parent / "lib"
    environment = os.environ | {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", "shmbroker"], env=environment, text=True
    )
    target = folder / "producer"
    source = str(HERE / "producer.c")
    subprocess.run(["cc", "-O2", source, "-o", str(target), *shlex.split(flags)], check=True)
    return target


def start_consumer(script: str, owner: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / script), NAME, str(owner)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def figures(process: subprocess.Popen[str]) -> tuple[int, int]:
    assert process.stdout is not None
    count, total = process.stdout.readline().split()
    return int(count), int(total)


def run(ring: Ring, folder: Path) -> bool:
    producer_program = compiled_producer(folder)
    consumers = {
        "Numba consumer": start_consumer("numba_consumer.py", 2),
        "Python consumer": start_consumer("python_consumer.py", 3),
    }
    try:
        print("compiling the Numba consumer's loop (a few seconds the first time) ...")
        for name, process in consumers.items():
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"the {name} did not start")
        started = time.perf_counter()
        producer = subprocess.Popen(
            [str(producer_program), NAME, str(COUNT), "1"], stdout=subprocess.PIPE, text=True
        )
        sent, sent_total = figures(producer)
        port = ring.port(4)
        for _ in consumers:
            port.publish(b"", spins=1_000_000)  # the end, once for each
        results = {name: figures(process) for name, process in consumers.items()}
        seconds = time.perf_counter() - started
    finally:
        for process in consumers.values():
            process.kill()
            process.wait()
    received = sum(count for count, _ in results.values())
    received_total = sum(total for _, total in results.values())
    print(f"{'C producer':16} {sent:>10,} messages of 64 bytes sent")
    for name, (count, _) in results.items():
        print(f"{name:16} {count:>10,} messages taken and acknowledged")
    print(f"{'lost':16} {sent - received:>10,}")
    print(f"{'together':16} {received / seconds:>10,.0f} messages a second")
    return (sent, sent_total) == (received, received_total)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, Ring.create(NAME, slots=4096) as ring:
        try:
            agreed = run(ring, Path(folder))
        finally:
            Ring.remove(NAME)
    print("the sums agree" if agreed else "THE SUMS DIFFER")
    return 0 if agreed else 1


sys.exit(main())
