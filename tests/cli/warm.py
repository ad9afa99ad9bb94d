"""The command `shmbroker` without the start of an interpreter: a child of a process that has it.

That process has imported what many verbs share.  For each command it forks, and the child goes on
as the script `shmbroker` would, to the end of its interpreter.  Arguments, environment, folder and
the three standard files come over a socket.
"""

from __future__ import annotations

import array
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

REQUEST_BYTES_MAX: Final = 100_000
STDIN_BYTES_MAX: Final = 60_000
"""What a pipe takes without a reader."""
AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_")
"""Variables that matter when an interpreter starts."""


def environment() -> dict[str, str]:
    """Of a person at a shell."""
    return {key: each for key, each in os.environ.items() if key != "PYTHONUNBUFFERED"}


def can_run(command: Sequence[str], stdin: bytes, given: Mapping[str, str]) -> bool:
    """It would start here as it would anywhere, and is not too long to be said."""
    is_short = len(_request(command, given)) <= REQUEST_BYTES_MAX and len(stdin) <= STDIN_BYTES_MAX
    return is_short and _at_start(given) == _at_start(environment())


def run(
    command: Sequence[str], stdin: bytes, given: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Like subprocess.run() with pipes for what the command reads and writes."""
    ends_at = time.monotonic() + seconds
    reads, feeds = os.pipe()
    out, writes = os.pipe()
    said, says = os.pipe()
    answer, answers = os.pipe()
    os.write(feeds, stdin)  # while somebody can read it: the command may end without
    os.close(feeds)
    _send(_server(os.getpid()), _request(command, given), (reads, writes, says, answers))
    for each in (reads, writes, says, answers):
        os.close(each)
    written = _all_of((out, said, answer), ends_at)
    pid, _, status = written[answer].partition(b" ")
    if not status:
        os.kill(int(pid), signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(command), seconds, written[out], written[said])
    code = os.waitstatus_to_exitcode(int(status))
    return subprocess.CompletedProcess(list(command), code, written[out], written[said])


def _request(command: Sequence[str], given: Mapping[str, str]) -> bytes:
    return json.dumps([list(command), dict(given), str(Path.cwd())]).encode()


def _at_start(given: Mapping[str, str]) -> dict[str, str]:
    return {key: each for key, each in given.items() if key.startswith(AT_START)}


@cache
def _server(_pid: int) -> socket.socket:
    """Of this process: it ends when nobody has our end of the socket any more."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, __file__, str(its.fileno())]
        subprocess.Popen(  # nobody waits for it
            command, pass_fds=[its.fileno()], env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return ours


def _send(server: socket.socket, request: bytes, files: Sequence[int]) -> None:
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
    server.sendmsg([request], [rights])


def _all_of(files: Sequence[int], ends_at: float) -> dict[int, bytes]:
    """What comes from each until its end, or until it is too late."""
    came = dict.fromkeys(files, b"")
    with selectors.DefaultSelector() as selector:
        for each in files:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < ends_at:
            for key, _ in selector.select(ends_at - time.monotonic()):
                part = os.read(key.fd, 1 << 16)
                came[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
    for each in files:
        os.close(each)
    return came


# --- the process that forks -----------------------------------------------------------------------


def _serve(requests: socket.socket) -> int:
    """Fork for each request.  It comes back in the children, with the exit code of a command."""
    from shmbroker import connecting  # noqa: F401
    from shmbroker.cli import connection, fields, instance, main, names, output, units  # noqa: F401
    from shmbroker.ipc.connection import broker  # noqa: F401
    from shmbroker.ipc.instance import status  # noqa: F401
    from shmbroker.netbridge.config import config  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 4)
        if not request:
            return 0
        if os.fork() == 0:
            requests.close()
            answers = files.pop()
            _wait_for_a_child(answers)
            os.close(answers)
            _become(*json.loads(request), files)
            return main.main()
        for each in files:
            os.close(each)


def _wait_for_a_child(answers: int) -> None:
    """Tell its pid and how it ended; comes back only in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.write(answers, f"{pid} ".encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, str(status).encode())
        os._exit(0)


def _become(
    command: Sequence[str], given: Mapping[str, str], folder: str, files: Sequence[int]
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for standard, each in enumerate(files):
        os.dup2(each, standard)
        os.close(each)
    os.environ.clear()
    os.environ.update(given)
    os.chdir(folder)
    time.tzset()
    sys.argv[:] = command


if __name__ == "__main__":
    sys.path[0] = str(Path(sys.executable).parent)
    with socket.socket(fileno=int(sys.argv[1])) as given:
        code = _serve(given)
    sys.exit(code)
