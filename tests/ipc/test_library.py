"""libshmbroker for C programs: no Python in it, none needed to run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shmbroker import Ring
from shmbroker.core import codes
from tests.compiler import LIBRARY, PREFIX, compile_program

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_no_python_symbol_in_the_library() -> None:
    symbols = subprocess.check_output(["nm", "-D", str(LIBRARY)], text=True)
    assert "sb_port_publish" in symbols
    assert not re.findall(r"\b_?Py\w+|numba|NRT_\w+", symbols)


def test_only_our_names_are_visible() -> None:
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(LIBRARY)], text=True)
    names = [line.split()[-1] for line in symbols.splitlines()]
    assert not [name for name in names if not name.startswith("sb_")]


def test_a_c_program_publishes(tmp_path: Path, ring_name: str) -> None:
    program = compile_program(EXAMPLES / "producer.c", tmp_path / "producer")
    with Ring.create(ring_name) as ring:
        done = subprocess.run([program, ring_name, "1000", "1"], capture_output=True, check=True)
        consumer = ring.port(2)
        bodies = [consumer.receive() for _ in range(1000)]
    assert done.stdout == b"1000 499500\n"
    assert sum(int.from_bytes((body or b"")[:8], "little") for body in bodies) == 499500


def test_a_c_program_runs_without_python(tmp_path: Path, ring_name: str) -> None:
    """In a root folder that holds the program, our library, libc, and nothing else."""
    program = compile_program(EXAMPLES / "producer.c", tmp_path / "producer")
    root = tmp_path / "root"
    listed = subprocess.check_output(["ldd", str(program)], text=True)
    for path in re.findall(r"(/\S+) \(0x", listed):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(program, root / "producer")
    (root / "dev/shm").mkdir(parents=True)
    command = f"mount --bind /dev/shm {root}/dev/shm && chroot {root} /producer {ring_name} 100 1"
    unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "-rm"]
    with Ring.create(ring_name) as ring:
        done = subprocess.run(
            [*unshare, "sh", "-c", command],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert done.stdout == "100 4950\n", done.stderr
        assert len(ring.port(2).receive_many()) == 100


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


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_the_kernels_are_emitted_for_every_architecture(machine: str) -> None:
    elf_machine = {"x86_64": 62, "aarch64": 183}[machine]
    program = f"""
import sys; from shmbroker.ipc.library import emit_object
sys.stdout.buffer.write(emit_object({machine!r}))
"""
    # in a process of its own: what is compiled ahead of time is not meant to be called there
    emitted = subprocess.check_output([sys.executable, "-c", program])
    assert emitted[:4] == b"\x7fELF"
    assert int.from_bytes(emitted[18:20], "little") == elf_machine
