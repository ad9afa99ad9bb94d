"""libshmbroker.so.0: all kernels compiled ahead of time, and the C of all rooms; no Python in it.

Numba gives one LLVM module a kernel; they are linked into one, each exported kernel gets a plain C
function around it (which LLVM then inlines into), everything else is hidden, and one object comes
out, position-independent and for the generic processor of the architecture.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import njit

from shmbroker.core import codes
from shmbroker.core.kernel import Kernel, bind
from shmbroker.core.llvm import ARCHITECTURES, extern, portable_intrinsics, signature_of
from shmbroker.ipc.base import system
from shmbroker.ipc.base.system import SYSTEM
from shmbroker.ipc.build import header, prototype
from shmbroker.ipc.build.kernels import KERNELS
from shmbroker.ipc.build.package_config import IN_PACKAGE, package_config
from shmbroker.ipc.build.paths import LIBRARY
from shmbroker.ipc.build.prototype import symbol

IPC = Path(__file__).parents[1]
OF_PYTHON = IPC / "message" / "taken.c"
"""An extension of its own (setup.py): the library has no Python in it."""
# prefetchw is a no-op where it is not known, so it is no requirement
FEATURES = {"x86_64": "+prfchw", "aarch64": ""}
TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


def _satisfy_loader() -> None:
    """Numba also loads what it compiles, though nobody calls it: give it some address."""
    address = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
    for name in (*SYSTEM, *ARCHITECTURES[platform.machine()]):
        llvm.add_symbol(f"sb_{name}", address)


def _compiled(kernel: Kernel, function: FunctionType) -> object:
    """A kernel without the wrappers by which Python would call it."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    options |= {"error_model": "numpy", "nogil": True, "forceinline": not kernel.cold}
    return njit(signature_of(kernel), **options)(function)


def _wrapper(kernel: Kernel, mangled: str) -> str:
    """A C function around a kernel: Numba returns through a pointer, and a status nobody needs."""
    names = [f"%a{index}" for index in range(len(kernel.parameters))]
    arguments = ", ".join(f"i64 {name}" for name in names)
    types_of = ", ".join(["ptr", "ptr"] + ["i64"] * len(names))
    passed = ", ".join(["ptr %result", "ptr %exception"] + [f"i64 {name}" for name in names])
    return f"""
declare i32 @{mangled}({types_of})
define i64 @{symbol(kernel)}({arguments}) {{
  %result = alloca i64
  %exception = alloca ptr
  store i64 0, ptr %result
  %status = call i32 @{mangled}({passed})
  %value = load i64, ptr %result
  ret i64 %value
}}
"""


def _retarget(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Parse a module for this machine, whichever it was made for."""
    former = ("target triple", "target datalayout")
    lines = [line for line in text.splitlines() if not line.startswith(former)]
    module = llvm.parse_assembly("\n".join(lines))
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def _linked(
    machine_name: str, machine: llvm.TargetMachine, kernels: list[Kernel]
) -> llvm.ModuleRef:
    _satisfy_loader()
    system = {name: extern(f"sb_{name}", arity) for name, arity in SYSTEM.items()}
    atomics = {**portable_intrinsics(), **system}
    compiled = bind(kernels, atomics, _compiled)
    exported = [kernel for kernel in kernels if kernel.exported]
    whole = _retarget("", machine)
    wrappers = []
    for kernel in exported:
        (overload,) = compiled[kernel.name].overloads.values()  # type: ignore[attr-defined]
        whole.link_in(_retarget(overload.library.get_llvm_str(), machine))
        wrappers.append(_wrapper(kernel, overload.fndesc.llvm_func_name))
    native = [each.definition(f"sb_{name}") for name, each in ARCHITECTURES[machine_name].items()]
    whole.link_in(_retarget("".join(wrappers + native), machine))
    _hide(whole, {symbol(kernel) for kernel in exported})
    return whole


def _hide(module: llvm.ModuleRef, public: set[str]) -> None:
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name not in public:
            each.linkage = "internal"


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def emit_object(machine_name: str, kernels: Iterable[Kernel] = KERNELS.values()) -> bytes:
    """The kernels as an object file for an architecture."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLES[machine_name])
    machine = target.create_target_machine(
        cpu="generic", features=FEATURES[machine_name], opt=3, reloc="pic", codemodel="default"
    )
    module = _linked(machine_name, machine, [*kernels])
    module.verify()
    _optimise(module, machine)
    return bytes(machine.emit_object(module))


def _digest(machine_name: str) -> str:
    """Changes with all that the object depends on: kernels, layouts, this file, the compiler."""
    sources = {Path(each.function.__code__.co_filename) for each in KERNELS.values()}
    sources |= set(Path(codes.__file__).parent.glob("*.py"))
    sources |= {Path(__file__), Path(system.__file__), Path(prototype.__file__)}
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__)
    summary = hashlib.sha256(" ".join([machine_name, *versions]).encode())
    for source in sorted(sources, key=lambda path: path.name):
        summary.update(source.read_bytes())
    return summary.hexdigest()[:16]


def kept_object(machine_name: str) -> bytes:
    """The same, compiled once: it takes a minute, and most changes touch no kernel."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = root / "shmbroker" / "build" / f"{_digest(machine_name)}.o"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_bytes(emit_object(machine_name))
        made.rename(kept)  # whole or not there, whoever else builds at the same time
    return kept.read_bytes()


LINKER_SCRIPT = f"""\
/* What -lshmbroker finds. */
INPUT(-l:{LIBRARY})
"""
"""Beside the library, where others have a symbolic link, which no wheel can hold.  Not a copy: a
program that is linked to one and loads the other would have the library twice."""


def sources() -> list[Path]:
    """The C of the library, of all rooms."""
    return sorted(set(IPC.glob("*/*.c")) - {OF_PYTHON})


def _build_digest(work: Path) -> str:
    """Names the symbols that only parts of one build share."""
    parts = [*sources(), *sorted(IPC.glob("*/*.h")), *sorted(work.glob("*.h")), work / "kernels.o"]
    summary = hashlib.sha256()
    for part in parts:
        summary.update(part.read_bytes())
    return summary.hexdigest()[:16]


def _compile(work: Path, include: Path, compiler: list[str]) -> list[Path]:
    flags = ["-fPIC", "-O2", "-g0", "-Wall", "-Wextra", "-std=gnu11", "-pthread"]
    flags += ["-fvisibility=hidden", "-Werror=implicit-function-declaration"]
    flags += ["-Wno-missing-field-initializers"]  # what is not named is 0, and meant to be
    flags += [f"-I{include}", f"-I{work}", f"-I{IPC}"]

    def compiled(source: Path) -> Path:
        made = work / f"{source.parent.name}-{source.stem}.o"
        subprocess.run([*compiler, *flags, "-c", source, "-o", made], check=True)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compiled, [work / "strerror.c", *sources()]))


def build(target: Path, work: Path, machine_name: str, version: str, compiler: str = "cc") -> Path:
    """Write the library, shmbroker.h and the pkg-config file below target, the rest to work.

    The compiler may have arguments: one for another machine has to be told which.
    """
    library = target / "lib" / LIBRARY
    include = target / "include"
    pkgconfig = target / "lib" / "pkgconfig"
    for folder in (pkgconfig, include, work):
        folder.mkdir(parents=True, exist_ok=True)
    (include / "shmbroker.h").write_text(header.header(version))
    for name, text in header.sources().items():
        (work / name).write_text(text)
    (work / "kernels.o").write_bytes(kept_object(machine_name))
    (pkgconfig / "shmbroker.pc").write_text(package_config(version, IN_PACKAGE))
    (library.parent / "libshmbroker.so").write_text(LINKER_SCRIPT)
    script = work / "symbols.map"
    script.write_text(header.version_script(_build_digest(work)))
    command = shlex.split(compiler)
    objects = _compile(work, include, command)
    link = [*command, "-shared", "-pthread", f"-Wl,-soname,{LIBRARY}", "-Wl,--no-undefined"]
    link += [f"-Wl,--version-script,{script}"]
    subprocess.run([*link, *objects, work / "kernels.o", "-o", library], check=True)
    return library
