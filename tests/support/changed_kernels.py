"""Kernels of one module with a snippet of one of them replaced, as an object for a library."""

from __future__ import annotations

import inspect
import platform
import textwrap
from dataclasses import replace
from pathlib import Path
from types import FunctionType

from shmbroker.core.kernel import KERNELS, Kernel
from shmbroker.perf.machine.process import Process

NEEDED = ("shmbroker.core.record",)
"""Modules with kernels that those call."""
PATIENCE_SECONDS = 300
"""To compile them: seconds, on a machine where nobody else wants the processors."""


def changed_kernels(target: Path, kernel: str, old: str, new: str) -> Path:
    """`old` stands in the kernel exactly once."""
    module = KERNELS[kernel].function.__module__
    chosen = [each for each in KERNELS.values() if each.function.__module__ in (module, *NEEDED)]
    changed = [_changed(each, old, new) if each.name == kernel else each for each in chosen]
    ours = [
        replace(each, exported=each.exported and each.function.__module__ == module)
        for each in changed
    ]

    def emit() -> int:
        from shmbroker.ipc.build.library import emit_object

        target.write_bytes(emit_object(platform.machine(), ours))
        return 0

    # in a process of its own: Numba could not run there what it compiles afterwards
    made = Process(emit, target.with_suffix(".errors"))
    assert made.has_ended(PATIENCE_SECONDS), f"{target} is not there"
    assert made.status == 0, made.errors.read_text()
    return target


def _changed(kernel: Kernel, old: str, new: str) -> Kernel:
    source = textwrap.dedent(inspect.getsource(kernel.function))
    assert source.count(old) == 1, f"{kernel.name}: write it anew"
    source = source[source.index("def ") :].replace(old, new)
    scope = dict(kernel.function.__globals__)
    exec(compile(source, f"changed {kernel.name}", "exec"), scope)
    function = scope[kernel.name]
    assert isinstance(function, FunctionType)
    function.__module__ = kernel.function.__module__
    return replace(kernel, function=function)
