"""libshmbroker for C programs: no Python in it, none needed to run."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import codes
from shmbroker.ipc.build import header
from tests.support.compiler import LIBRARY, PREFIX, compile_program
from tests.support.plain_root import PlainRoot

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_no_python_symbol_in_the_library() -> None:
    symbols = subprocess.check_output(["nm", "-D", str(LIBRARY)], text=True)
    assert "sb_port_publish" in symbols
    assert not re.findall(r"\b_?Py\w+|numba|NRT_\w+", symbols)


def test_only_our_names_are_visible() -> None:
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(LIBRARY)], text=True)
    names = [line.split()[-1] for line in symbols.splitlines()]
    assert not [name for name in names if not name.startswith(("sb_", "SHMBROKER_"))]


def test_symbols_say_whether_they_are_public() -> None:
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(LIBRARY)], text=True)
    nodes: dict[str, set[str]] = {}
    for name, node in re.findall(r" T (\w+)@@(\w+)$", symbols, re.MULTILINE):
        nodes.setdefault(node, set()).add(name)
    (private,) = nodes.keys() - {"SHMBROKER_0"}
    assert re.fullmatch(r"SHMBROKER_PRIVATE_[0-9a-f]{16}", private)
    assert nodes["SHMBROKER_0"] == set(header.public_symbols())
    assert nodes[private] == set(header.private_symbols())


def test_the_installed_header_has_public_functions_only() -> None:
    text = (PREFIX / "include" / "shmbroker.h").read_text()
    assert not [name for name in header.private_symbols() if f"{name}(" in text]
    assert [path.name for path in (PREFIX / "include").iterdir()] == ["shmbroker.h"]


def test_a_linked_program_names_the_versioned_library(tmp_path: Path) -> None:
    source = tmp_path / "version.c"
    source.write_text(
        '#include <stdio.h>\n#include "shmbroker.h"\n'
        'int main(void) { printf("%d\\n", sb_version() == SB_VERSION); return 0; }\n'
    )
    program = compile_program(source, tmp_path / "version")
    assert "libshmbroker.so.0 =>" in subprocess.check_output(["ldd", program], text=True)
    assert subprocess.check_output([program], text=True) == "1\n"


CONNECTS = """
#include <stdio.h>
#include "shmbroker.h"
int main(int count, char **argument)
{
    sb_connection *connection = (sb_connection *)argument;
    (void)count;
    printf("%d ", (int)sb_observe(argument[1], &connection));
    printf("%d %d ", (int)sb_connect(argument[1], NULL, &connection), connection == NULL);
    printf("%s\\n", sb_detail(SB_OTHER_HEADER));
    sb_connection_free(connection);
    return 0;
}
"""


def test_a_program_with_other_structures_gets_an_error(tmp_path: Path, vhost: str) -> None:
    source = tmp_path / "connects.c"
    source.write_text(CONNECTS)
    program = compile_program(source, tmp_path / "connects")
    assert subprocess.check_output([program, vhost], text=True).startswith("0 0 0 ")
    # before the installed one: the source's folder is looked at first
    text = (PREFIX / "include" / "shmbroker.h").read_text()
    other = text.replace("int64_t ttl_ns; /* how long", "int64_t more; int64_t ttl_ns; /* how long")
    other = other.replace(header.layout_digest(), header.layout_digest()[::-1])
    (tmp_path / "shmbroker.h").write_text(re.sub(r"SB_VERSION \d+", "SB_VERSION 1002003", other))
    program = compile_program(source, tmp_path / "other")
    told = subprocess.check_output([program, vhost], text=True)
    code = codes.OTHER_HEADER
    assert told.startswith(
        f"{code} {code} 1 the program was compiled with shmbroker.h 1.2.3, whose"
    )


def test_a_c_program_runs_without_python(tmp_path: Path, broker: shmbroker.Broker) -> None:
    """In a root folder that holds the program, our library, libc, and nothing else."""
    broker.declare_queue("numbers", slots=128)
    broker.declare_exchange("demo", "topic")
    broker.bind("demo", "numbers", key="#")
    program = compile_program(EXAMPLES / "c_producer.c", tmp_path / "c_producer")
    root = PlainRoot(tmp_path / "root")
    root.add(program, "/bin/c_producer")
    done = root.run("/bin/c_producer", broker.vhost, "demo", "100", shares_memory=True)
    assert done.stdout == "100 messages sent, 100 delivered to queues\n"
    bodies = [message.body for message in broker.queue("numbers").get_many(100)]
    assert [int.from_bytes(body[:8], "little") for body in bodies] == list(range(100))


def test_errors_have_codes_and_texts(tmp_path: Path) -> None:
    source = tmp_path / "errors.c"
    source.write_text(
        '#include <stdio.h>\n#include "shmbroker.h"\n'
        "int main(void) {\n"
        'printf("%s\\n", sb_strerror(SB_FULL));\n'
        'printf("%s\\n", sb_strerror(sb_vhost_create("a/b", 1 << 20)));\n'
        'printf("%s\\n", sb_strerror(-12345)); return 0; }\n'
    )
    program = compile_program(source, tmp_path / "errors")
    lines = subprocess.check_output([program], text=True).splitlines()
    assert lines == [codes.TEXTS[codes.FULL], codes.TEXTS[codes.BAD_NAME], "unknown code"]


def test_the_header_is_plain_c_and_cpp(tmp_path: Path) -> None:
    for compiler, flags in {"cc": ["-std=c99", "-x", "c"], "c++": ["-x", "c++"]}.items():
        if compiler == "c++" and shutil.which("c++") is None:
            continue  # a C++ compiler is nothing that shmbroker needs
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
        installed = PREFIX / "include" / "shmbroker.h"
        subprocess.run([compiler, *flags, *strict, installed], check=True)


ARCHITECTURES = {"x86_64": 62, "aarch64": 183}
"""And what an ELF file calls them."""


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES.keys() - {platform.machine()}))
def test_the_kernels_are_emitted_for_other_architectures(machine: str) -> None:
    """For this one they were when the library was built; once for all that they depend on."""
    program = f"""
import sys; from shmbroker.ipc.build.library import kept_object
sys.stdout.buffer.write(kept_object({machine!r}))
"""
    # in a process of its own: what is compiled ahead of time is not meant to be called there
    emitted = subprocess.check_output([sys.executable, "-c", program])
    assert emitted[:4] == b"\x7fELF"
    assert int.from_bytes(emitted[18:20], "little") == ARCHITECTURES[machine]
