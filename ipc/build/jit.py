"""The kernels as Numba functions, to be inlined into users' own @njit loops.

Compiled when first used, and kept on disk.  Numba's own cache asks only whether the file that
defines a function has changed; a constant imported from layout.py would stay stale in machine
code.  Ours lies in a folder named by a digest of all kernels' sources and of Numba's version.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import intrinsic

from shmbroker.core.kernel import Kernel, bind
from shmbroker.core.llvm import extern, intrinsics
from shmbroker.ipc.base.system import SYSTEM
from shmbroker.ipc.build.kernels import KERNELS
from shmbroker.ipc.build.paths import PATHS

PACKAGE = Path(__file__).parents[2]

ROOMS = ("core", "ipc/ring", "ipc/base", "ipc/build")
"""Where kernels are, and what compiles them."""


@cache
def digest() -> str:
    """Changes with any kernel, layout or compiler."""
    summary = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for source in sorted(each for room in ROOMS for each in (PACKAGE / room).glob("*.py")):
        summary.update(source.read_bytes())
    return summary.hexdigest()[:16]


def cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "shmbroker" / digest()


class KernelLocator:
    """Where Numba keeps a compiled kernel; the folder's name says all that it depends on."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    def ensure_cache_path(self) -> None:
        cache_folder().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return self._function.__module__

    @classmethod
    def from_function(cls, function: FunctionType, path: str) -> KernelLocator:
        return cls(function)


class KernelCacheImplementation(CompileResultCacheImpl):
    # what Numba's interface asks for, and its annotations do not say
    _locator_classes = [KernelLocator]  # type: ignore[list-item]  # noqa: RUF012


class KernelCache(FunctionCache):
    _impl_class = KernelCacheImplementation


def _dispatcher(kernel: Kernel, function: FunctionType) -> Any:
    inlined = not kernel.cold
    made: Any = njit(error_model="numpy", nogil=True, forceinline=inlined)(function)
    if kernel.exported:
        made._cache = KernelCache(function)
    return made


@cache
def functions() -> dict[str, Any]:
    """All exported kernels by name."""
    llvmlite.binding.load_library_permanently(str(PATHS["library"]))
    system = {name: extern(f"sb_{name}", arity) for name, arity in SYSTEM.items()}
    bound = bind(KERNELS.values(), {**intrinsics(), **system}, _dispatcher)
    made = {name: function for name, function in bound.items() if KERNELS[name].exported}
    made["view"] = view
    made["pause"] = njit(_calling(intrinsics()["pause"]))
    made["clock"] = njit(_calling(system["system_clock"]))
    made["yield_processor"] = njit(_calling(system["system_yield"]))
    return made


def _calling(operation: Any) -> Any:
    def call() -> int:
        value: int = operation()
        return value

    return call


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer to bytes, for carray."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.uint8)(types.int64), codegen


@njit
def view(address: int, length: int) -> Any:
    """The bytes at an address, as an array, where they are."""
    return numba.carray(_pointer(address), (length,), np.uint8)  # type: ignore[attr-defined,call-arg]
