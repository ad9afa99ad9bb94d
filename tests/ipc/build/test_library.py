"""libshmbroker for C programs: no Python in it, none needed to run."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import codes
from tests.support.compiler import LIBRARY, PREFIX, compile_program

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_no_python_symbol_in_the_library() -> None:
    symbols = subprocess.check_output(["nm", "-D", str(LIBRARY)], text=True)
    assert "sb_port_publish" in symbols
    assert not re.findall(r"\b_?Py\w+|numba|NRT_\w+", symbols)


def test_only_our_names_are_visible() -> None:
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(LIBRARY)], text=True)
    names = [line.split()[-1] for line in symbols.splitlines()]
    assert not [name for name in names if not name.startswith("sb_")]


def test_a_c_program_runs_without_python(tmp_path: Path, broker: shmbroker.Broker) -> None:
    """In a root folder that holds the program, our library, libc, and nothing else."""
    broker.declare_queue("numbers", slots=128)
    broker.declare_exchange("demo", "topic")
    broker.bind("demo", "numbers", key="#")
    program = compile_program(EXAMPLES / "c_producer.c", tmp_path / "c_producer")
    root = tmp_path / "root"
    listed = subprocess.check_output(["ldd", str(program)], text=True)
    for path in re.findall(r"(/\S+) \(0x", listed):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(program, root / "c_producer")
    for place in ("dev/shm", "proc"):
        (root / place).mkdir(parents=True)
    command = f"""
        mount --bind /dev/shm {root}/dev/shm
        mount --rbind /proc {root}/proc
        chroot {root} /c_producer {broker.vhost} demo 100
    """
    done = subprocess.run(
        ["unshare", "--mount" if os.getuid() == 0 else "-rm", "sh", "-e", "-c", command],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.stdout == "100 messages sent, 100 delivered to queues\n", done.stderr
    bodies = [message.body for message in broker.queue("numbers").get_many(100)]
    assert [int.from_bytes(body[:8], "little") for body in bodies] == list(range(100))


def test_errors_have_codes_and_texts(tmp_path: Path) -> None:
    source = tmp_path / "errors.c"
    source.write_text(
        '#include <stdio.h>\n#include "shmbroker.h"\n'
        "int main(void) { sb_ring *ring;\n"
        'printf("%s\\n", sb_strerror(SB_FULL));\n'
        'printf("%s\\n", sb_strerror(sb_ring_attach("a/b", &ring)));\n'
        'printf("%s\\n", sb_strerror(-12345)); return 0; }\n'
    )
    program = compile_program(source, tmp_path / "errors")
    lines = subprocess.check_output([program], text=True).splitlines()
    assert lines == [codes.TEXTS[codes.FULL], codes.TEXTS[codes.INVALID], "unknown code"]


def test_the_header_is_plain_c_and_cpp(tmp_path: Path) -> None:
    for compiler, flags in {"cc": ["-std=c99", "-x", "c"], "c++": ["-x", "c++"]}.items():
        if compiler == "c++" and shutil.which("c++") is None:
            continue  # a C++ compiler is nothing that shmbroker needs
        header = str(PREFIX / "include" / "shmbroker.h")
        subprocess.run(
            [compiler, *flags, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", header],
            check=True,
        )


ARCHITECTURES = {"x86_64": 62, "aarch64": 183}
"""And what an ELF file calls them."""


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES.keys() - {platform.machine()}))
def test_the_kernels_are_emitted_for_other_architectures(machine: str) -> None:
    """For this one they were when the library was built."""
    program = f"""
import sys; from shmbroker.ipc.build.library import emit_object
sys.stdout.buffer.write(emit_object({machine!r}))
"""
    # in a process of its own: what is compiled ahead of time is not meant to be called there
    emitted = subprocess.check_output([sys.executable, "-c", program])
    assert emitted[:4] == b"\x7fELF"
    assert int.from_bytes(emitted[18:20], "little") == ARCHITECTURES[machine]
