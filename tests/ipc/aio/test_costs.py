"""asyncio: what waiting costs, also on older kernels, and Ctrl-C."""

from __future__ import annotations

import signal

from tests.ipc.aio.loop import child

IDLE = """
import asyncio, resource, sys, shmbroker
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
async def main():
    async with shmbroker.aio.connect(sys.argv[1]) as broker:
        queue = await broker.declare_queue("q")
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0.2)
        costs = []
        for _ in range(3):
            before = used()
            await asyncio.sleep(1)
            costs.append(used() - before)
        print(min(costs))  # the others may have paid for somebody else on this processor
        waiting.cancel()
asyncio.run(main())
"""


def test_an_idle_consumer_costs_next_to_nothing(url: str) -> None:
    process = child(IDLE, url)
    out, _ = process.communicate(timeout=60)
    assert float(out) < 0.005


WITHOUT_WAITV = """
import asyncio, ctypes, struct, sys, time
from statistics import median

NUMBER, ENOSYS = 449, 38
# load the number of the call; futex_waitv: the error; else: allow
program = b"".join(struct.pack("HBBI", *each) for each in [
    (0x20, 0, 0, 0), (0x15, 0, 1, NUMBER), (0x06, 0, 0, 0x50000 | ENOSYS), (0x06, 0, 0, 0x7FFF0000),
])
kept = ctypes.create_string_buffer(program)
described = struct.pack("HxxxxxxQ", 4, ctypes.addressof(kept))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(described), 0, 0) == 0
assert libc.syscall(NUMBER, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == ENOSYS

import shmbroker
async def main():
    async with shmbroker.aio.connect(sys.argv[1]) as broker:
        queues = [await broker.declare_queue(f"q{each}") for each in range(3)]
        waited = []
        for _ in range(20):
            waiting = [asyncio.create_task(queue.receive()) for queue in queues]
            await asyncio.sleep(0.005)
            started = time.perf_counter()
            for queue in queues:
                queue.publish_nowait(b"x")
            await asyncio.gather(*waiting)
            waited.append(time.perf_counter() - started)
        print(median(waited))
asyncio.run(main())
"""


def test_an_older_kernel_is_slower_and_works(url: str) -> None:
    process = child(WITHOUT_WAITV, url)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert float(out) < 0.05


def test_ctrl_c_ends_a_waiting_program(url: str) -> None:
    program = IDLE.replace("asyncio.sleep(0.2)", "asyncio.sleep(0.2); print('ready', flush=True)")
    process = child(program, url)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) != 0
    finally:
        process.kill()
        process.wait()
