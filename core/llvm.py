"""The atomics as LLVM instructions, for Numba; the only file that knows processors by name.

`pause` and `cycles` differ per architecture.  Everything else is portable LLVM, so the same
kernels are emitted for any target that LLVM knows.  (Inline assembly is out: it needs an assembly
parser that Numba does not initialise.)
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from shmbroker.core.atomics import ATOMICS
from shmbroker.core.kernel import Kernel

I64 = ir.IntType(64)
I32 = ir.IntType(32)
I8 = ir.IntType(8)
FLOAT = ir.FloatType()
DOUBLE = ir.DoubleType()
VOID = ir.VoidType()
POINTER = ir.PointerType()

Emit = Callable[[ir.IRBuilder, list[ir.Value]], ir.Value]


def word_pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, ir.PointerType(I64))


def byte_pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, ir.PointerType(I8))


def zero() -> ir.Constant:
    return ir.Constant(I64, 0)


def declare(
    builder: ir.IRBuilder, name: str, result: ir.Type, arguments: list[ir.Type]
) -> ir.Function:
    module = builder.module
    if name in module.globals:
        return module.globals[name]
    return ir.Function(module, ir.FunctionType(result, arguments), name)


def emit_load(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.load(word_pointer(builder, args[0]), typ=I64)


def emit_load_byte(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.zext(builder.load(byte_pointer(builder, args[0]), typ=I8), I64)


def emit_store(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    builder.store(args[1], word_pointer(builder, args[0]))
    return args[1]


def emit_load_acquire(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.load_atomic(word_pointer(builder, args[0]), "acquire", 8, typ=I64)


def emit_store_release(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    builder.store_atomic(args[1], word_pointer(builder, args[0]), "release", 8)
    return args[1]


def emit_exchange(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.atomic_rmw("xchg", word_pointer(builder, args[0]), args[1], "seq_cst")


def emit_fetch_add(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.atomic_rmw("add", word_pointer(builder, args[0]), args[1], "seq_cst")


def emit_compare_exchange(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    pointer = word_pointer(builder, args[0])
    pair = builder.cmpxchg(pointer, args[1], args[2], "seq_cst", "seq_cst")
    return builder.extract_value(pair, 0)


def emit_fence_acquire(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    builder.fence("acquire")
    return zero()


def emit_copy(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    target, source = (byte_pointer(builder, each) for each in args[:2])
    pointer = target.type
    function = declare(
        builder, "llvm.memcpy.p0.p0.i64", VOID, [pointer, pointer, I64, ir.IntType(1)]
    )
    builder.call(function, [target, source, args[2], ir.Constant(ir.IntType(1), 0)])
    return args[2]


def emit_fill(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    target = byte_pointer(builder, args[0])
    function = declare(builder, "llvm.memset.p0.i64", VOID, [target.type, I8, I64, ir.IntType(1)])
    byte = builder.trunc(args[1], I8)
    builder.call(function, [target, byte, args[2], ir.Constant(ir.IntType(1), 0)])
    return args[2]


def prefetch_emitter(write: int) -> Emit:
    def emit(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
        target = byte_pointer(builder, args[0])
        function = declare(builder, "llvm.prefetch.p0", VOID, [target.type, I32, I32, I32])
        locality, data = ir.Constant(I32, 3), ir.Constant(I32, 1)
        builder.call(function, [target, ir.Constant(I32, write), locality, data])
        return zero()

    return emit


def emit_highest_bit(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    kind = ir.IntType(1)
    function = declare(builder, "llvm.ctlz.i64", I64, [I64, kind])
    zeros = builder.call(function, [args[0], ir.Constant(kind, 1)])
    return builder.xor(zeros, ir.Constant(I64, 63))


def overflow_emitter(operation: str) -> Emit:
    """Whether the result is no word: a kernel cannot see that in the result, as LLVM takes it that
    Numba's arithmetic never overflows."""

    def emit(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
        kind = ir.LiteralStructType([I64, ir.IntType(1)])
        function = declare(builder, f"llvm.{operation}.with.overflow.i64", kind, [I64, I64])
        return builder.zext(builder.extract_value(builder.call(function, args), 1), I64)

    return emit


def emit_search(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    at, wanted = (byte_pointer(builder, each) for each in (args[0], args[2]))
    function = declare(builder, "memmem", at.type, [at.type, I64, at.type, I64])
    return builder.ptrtoint(builder.call(function, [at, args[1], wanted, args[3]]), I64)


def emit_real_of(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    return builder.bitcast(builder.sitofp(args[0], DOUBLE), I64)


def emit_real_widened(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
    narrow = builder.bitcast(builder.trunc(args[0], I32), FLOAT)
    return builder.bitcast(builder.fpext(narrow, DOUBLE), I64)


def real_emitter(operation: str) -> Emit:
    def emit(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
        left, right = (builder.bitcast(each, DOUBLE) for each in args)
        return builder.bitcast(getattr(builder, operation)(left, right), I64)

    return emit


def real_comparison(operator: str) -> Emit:
    """False of what is no number."""

    def emit(builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
        left, right = (builder.bitcast(each, DOUBLE) for each in args)
        return builder.zext(builder.fcmp_ordered(operator, left, right), I64)

    return emit


@dataclass(frozen=True, slots=True)
class Instruction:
    """An LLVM intrinsic that exists on one architecture only."""

    name: str
    arguments: tuple[int, ...] = ()
    returns: bool = False

    def emit(self, builder: ir.IRBuilder, args: list[ir.Value]) -> ir.Value:
        kind = I64 if self.returns else VOID
        function = declare(builder, self.name, kind, [I32] * len(self.arguments))
        value = builder.call(function, [ir.Constant(I32, each) for each in self.arguments])
        return value if self.returns else zero()

    def definition(self, function: str) -> str:
        """A function, as text, that does just this."""
        kind = "i64" if self.returns else "void"
        types_of = ", ".join("i32" for _ in self.arguments)
        passed = ", ".join(f"i32 {each}" for each in self.arguments)
        value, assigned = ("%value", "%value = ") if self.returns else ("0", "")
        return f"""
declare {kind} @{self.name}({types_of})
define i64 @{function}() alwaysinline {{
  {assigned}call {kind} @{self.name}({passed})
  ret i64 {value}
}}
"""


ARCHITECTURES: dict[str, dict[str, Instruction]] = {
    "x86_64": {
        "pause": Instruction("llvm.x86.sse2.pause"),
        "cycles": Instruction("llvm.readcyclecounter", returns=True),
    },
    "aarch64": {
        "pause": Instruction("llvm.aarch64.hint", arguments=(1,)),
        # readcyclecounter is a privileged register on Arm; the steady counter is for everybody
        "cycles": Instruction("llvm.readsteadycounter", returns=True),
    },
}


PORTABLE: dict[str, Emit] = {
    "load": emit_load,
    "load_byte": emit_load_byte,
    "store": emit_store,
    "load_acquire": emit_load_acquire,
    "store_release": emit_store_release,
    "exchange": emit_exchange,
    "compare_exchange": emit_compare_exchange,
    "fetch_add": emit_fetch_add,
    "fence_acquire": emit_fence_acquire,
    "copy": emit_copy,
    "fill": emit_fill,
    "prefetch": prefetch_emitter(0),
    "prefetch_write": prefetch_emitter(1),
    "highest_bit": emit_highest_bit,
    "sum_overflows": overflow_emitter("sadd"),
    "difference_overflows": overflow_emitter("ssub"),
    "product_overflows": overflow_emitter("smul"),
    "search": emit_search,
    "real_of": emit_real_of,
    "real_widened": emit_real_widened,
    "real_add": real_emitter("fadd"),
    "real_multiply": real_emitter("fmul"),
    "real_divide": real_emitter("fdiv"),
    "real_less": real_comparison("<"),
    "real_equal": real_comparison("=="),
}


def _intrinsic(name: str, emit: Emit) -> object:
    """An operation as a Numba intrinsic: int64 arguments, int64 result."""

    def codegen(context: object, builder: ir.IRBuilder, signature: object, args: tuple) -> ir.Value:
        return emit(builder, list(args))

    arity = ATOMICS[name]
    signature = types.int64(*[types.int64] * arity)
    parameters = ", ".join(f"a{index}" for index in range(arity))
    # Numba reads an intrinsic's arity from its Python signature, so it must be spelt out
    scope: dict[str, Callable[..., object]] = {}
    source = f"def {name}(typingctx, {parameters}):\n    return made"
    exec(source, {"made": (signature, codegen)}, scope)
    return intrinsic(scope[name])


def extern(symbol: str, arity: int) -> object:
    """A C function of int64 words, as Numba declares it."""
    return types.ExternalFunction(symbol, types.int64(*[types.int64] * arity))


def intrinsics() -> dict[str, object]:
    """All atomics as Numba intrinsics for the processor that we run on."""
    native = {name: each.emit for name, each in ARCHITECTURES[platform.machine()].items()}
    emitters: dict[str, Emit] = PORTABLE | native
    return {name: _intrinsic(name, emitters[name]) for name in ATOMICS}


def portable_intrinsics() -> dict[str, object]:
    """The same with what differs per architecture left to functions called sb_<name>."""
    return {
        name: _intrinsic(name, PORTABLE[name]) if name in PORTABLE else extern(f"sb_{name}", arity)
        for name, arity in ATOMICS.items()
    }


def signature_of(kernel: Kernel) -> object:
    return types.int64(*[types.int64] * len(kernel.parameters))
