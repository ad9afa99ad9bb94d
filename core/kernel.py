"""What a kernel is, and how one source serves four uses.

A kernel is a function of 64-bit signed integers that returns one.  It is written in the subset of
Python that Numba compiles, on top of the atomics of `atomics.py`, and never raises: a negative
result is a code of `codes.py`.

Being plain Python, a kernel means nothing until its atomics are bound:

    libshmbroker.so    bound to LLVM intrinsics, compiled ahead of time   (ipc/build)
    shmbroker.kernels  the same, as dispatchers for users' @njit loops
    the explorer       bound to a fake memory that stops at each atomic   (tests/explore)

Kernels are bound in the order of their definition, so one may call those defined before it.
Annotations are for the C header: every argument and every result is an int64.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TypeVar, cast

KernelFunction = TypeVar("KernelFunction", bound=Callable[..., int])


@dataclass(frozen=True, slots=True)
class Kernel:
    """One registered kernel.

    `exported` ones are part of the C interface.  `cold` ones are kept out of line, so that what is
    inlined around the call stays small; all others are inlined into whoever calls them.
    """

    name: str
    function: FunctionType
    exported: bool
    cold: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)


KERNELS: dict[str, Kernel] = {}


def kernel(function: KernelFunction) -> KernelFunction:
    """Register a kernel for use by other kernels."""
    return _register(function)


def cold(function: KernelFunction) -> KernelFunction:
    """Register a kernel that is off every hot path."""
    return _register(function, cold=True)


def exported(function: KernelFunction) -> KernelFunction:
    """Register a kernel that C, Python and Numba programs call by the name sb_<name>."""
    return _register(function, exported=True)


def exported_cold(function: KernelFunction) -> KernelFunction:
    """Register an exported kernel that other kernels call out of line."""
    return _register(function, exported=True, cold=True)


def _register(
    function: KernelFunction, *, exported: bool = False, cold: bool = False
) -> KernelFunction:
    name = function.__name__
    if name in KERNELS and KERNELS[name].function.__module__ != function.__module__:
        raise ValueError(f"two kernels are called {name!r}: give one of them another name")
    KERNELS[name] = Kernel(name, cast(FunctionType, function), exported, cold)
    return function


def bind(
    kernels: Iterable[Kernel],
    atomics: Mapping[str, object],
    wrap: Callable[[Kernel, FunctionType], object],
) -> dict[str, object]:
    """Give each kernel these atomics, wrap it, and let later kernels see the wrapped one."""
    bound: dict[str, object] = {}
    for each in kernels:
        source = each.function
        scope = {**source.__globals__, **atomics, **bound}
        copy = FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
        copy.__module__ = source.__module__
        copy.__doc__ = source.__doc__
        bound[each.name] = wrap(each, copy)
    return bound
