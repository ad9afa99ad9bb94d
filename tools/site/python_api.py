"""The reference of Python: all public names of shmbroker, shmbroker.aio and shmbroker.kernels.

Made from signatures, type hints and docstrings of the installed package.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any, Final, ForwardRef, is_typeddict

import shmbroker
from shmbroker.core.kernel import Kernel
from shmbroker.ipc.build.prototype import exported_kernels
from shmbroker.ipc.ring.header import PUBLIC_KERNELS
from shmbroker.ipc.settings.setting import SETTINGS
from shmbroker.netbridge.client.cluster import Cluster
from tools.site.markdown import cell, code_cell, fenced, prose

LINE: Final = 88
"""Longer signatures have a line for each argument."""
MODULES: Final = re.compile(r"\b(?:typing|collections\.abc|datetime|(?:shmbroker\.)[\w.]*)\.")
EMPTY: Final = inspect.Parameter.empty
VHOST: Final = ("create", "exists", "names", "delete")
"""Of the module vhost; all others are for brokers."""
MADE: Final = {"of"}
"""How classes are made inside of the package."""
WAITING: Final = ("shmbroker.ipc.ring.verbs", "shmbroker.ipc.ring.waiting")
"""Modules of the kernels that sleep, which a port of C does not have."""
ALONE: Final = """\
| function | |
|---|---|
| `view(address, length)` | The bytes at an address, as an array, where they are. |
| `clock()` | Nanoseconds of the monotonic clock. |
| `pause()` | Tells the processor that a loop spins. |
| `yield_processor()` | Lets another thread run. |"""
SETTING: Final = re.compile(r"Annotated\[(.+?), Setting\(")


def pages() -> dict[str, str]:
    """By name of the page."""
    return {
        "python-api.md": of_package(),
        "asyncio-api.md": of_asyncio(),
        "kernels-api.md": of_kernels(),
    }


# --- pages ----------------------------------------------------------------------------------------


def of_package() -> str:
    names = {name: getattr(shmbroker, name) for name in shmbroker.__all__}
    classes = {name: each for name, each in names.items() if inspect.isclass(each)}
    classes["Cluster"] = Cluster  # what cluster() answers
    errors = {name: each for name, each in classes.items() if issubclass(each, Exception)}
    options = {name: each for name, each in classes.items() if is_typeddict(each)}
    told = {name: each for name, each in classes.items() if dataclasses.is_dataclass(each)}
    rest = classes.keys() - errors.keys() - options.keys() - told.keys()
    parts = [
        "# Python API",
        "All names of `shmbroker`, as the code has them. [asyncio](asyncio-api.md) has the same "
        "verbs, awaitable; [Numba](kernels-api.md) has those of a port.",
        "## Functions",
        *(function(name, names[name]) for name in ("connect", "cluster")),
        *(function(f"vhost.{name}", getattr(shmbroker.vhost, name)) for name in VHOST),
        *(_class(name, classes[name]) for name in sorted(rest)),
        "## Information",
        "What queues, brokers and messages were when they were looked at.",
        *(_class(name, each, level=3) for name, each in told.items()),
        "## Options and types",
        *(_class(name, each, level=3) for name, each in options.items()),
        _aliases(names),
        "## Errors",
        "[Errors](errors.md) has the codes of C and their texts.",
        _errors(errors),
    ]
    return "\n\n".join(each for each in parts if each) + "\n"


def of_asyncio() -> str:
    from shmbroker import aio

    own = {
        name: getattr(aio, name)
        for name in aio.__all__
        if getattr(aio, name) is not getattr(shmbroker, name, None)
    }
    functions = [name for name, each in own.items() if not inspect.isclass(each)]
    parts = [
        "# asyncio API",
        "What `shmbroker.aio` has of its own. Messages, errors and information are those of "
        "[Python](python-api.md). [asyncio](asyncio.md) says how to use it.",
        "## Functions",
        *(function(name, own.pop(name)) for name in sorted(functions)),
        *(_class(name, each) for name, each in sorted(own.items())),
    ]
    return "\n\n".join(parts) + "\n"


def of_kernels() -> str:
    parts = [
        "# Numba API",
        "Verbs of a port for `@njit` loops: `from shmbroker.kernels import publish, take, ack`. "
        "They take addresses as integers: `Port.address`, `array.ctypes.data`. An answer below 0 "
        "is [a code](errors.md). [Numba in five minutes](start-numba.md) has a program.",
    ]
    for kernel in sorted(filter(_is_for_loops, exported_kernels()), key=lambda each: each.name):
        arguments = ", ".join(inspect.signature(kernel.function).parameters)
        parts.append(f"## `{kernel.name}` {{ #{kernel.name} }}")
        parts.append(fenced(f"{kernel.name}({arguments})", "python"))
        parts.append(prose(kernel.function.__doc__))
    parts += ["## Beside them", ALONE]
    return "\n\n".join(each for each in parts if each) + "\n"


def _is_for_loops(kernel: Kernel) -> bool:
    if kernel.name in {name.removeprefix("port_") for name in PUBLIC_KERNELS}:
        return True
    is_waiting = kernel.function.__module__ in WAITING and "wait" in kernel.name
    return is_waiting and bool(kernel.function.__doc__)


# --- parts ----------------------------------------------------------------------------------------


def function(name: str, each: Any, level: int = 3) -> str:
    heading = f"{'#' * level} `{name}` {{ #{name} }}"
    text = prose(inspect.getdoc(each))
    return "\n\n".join([heading, fenced(signature(name.rpartition(".")[2], each), "python"), text])


def _class(name: str, kind: type[Any], level: int = 2) -> str:
    doc = kind.__doc__ or ""
    made = dataclasses.is_dataclass(kind) and doc.startswith(f"{kind.__name__}(")
    parts = [f"{'#' * level} `{name}` {{ #{name} }}", "" if made else prose(doc)]
    if rows := list(attributes(kind)):
        table = ["| name | type | |", "|---|---|---|"]
        table += [f"| `{each}` | {code_cell(type_)} | {cell(text)} |" for each, type_, text in rows]
        parts.append("\n".join(table))
    if not is_typeddict(kind):
        parts += [function(f"{name}.{verb}", each, level + 1) for verb, each in verbs(kind)]
    return "\n\n".join(each for each in parts if each)


def _aliases(names: dict[str, Any]) -> str:
    rows = ["| type | |", "|---|---|"]
    for name, each in names.items():
        if not inspect.isclass(each) and not inspect.isroutine(each) and each is not None:
            if not isinstance(each, (ModuleType, str)):
                rows.append(f"| `{name}` | {code_cell(formatted(each))} |")
    return "\n".join(rows)


def _errors(errors: dict[str, type[Any]]) -> str:
    rows = ["| error | is a | when |", "|---|---|---|"]
    for name, each in sorted(errors.items()):
        bases = ", ".join(f"`{base.__name__}`" for base in each.__bases__)
        rows.append(f"| `{name}` | {bases} | {cell(each.__doc__)} |")
    return "\n".join(rows)


# --- members --------------------------------------------------------------------------------------


def verbs(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public functions of a class, its bases' among them, in the order of the alphabet."""
    for name in sorted(dir(kind)):
        each = inspect.getattr_static(kind, name)
        if isinstance(each, (staticmethod, classmethod)):
            each = getattr(kind, name)
        if name[0] == "_" or name in MADE:
            continue
        if inspect.isroutine(each) and _is_ours(kind, name):
            yield name, each


def attributes(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Fields and properties: name, type, text."""
    settings = {each.name: each.help for each in SETTINGS}
    texts = settings if issubclass(kind, dict) else told_of(kind)
    for name, hint in _hints(kind).items():
        if name[0] != "_":
            yield name, formatted(hint), texts.get(name, "")
    for name in sorted(dir(kind)):
        each = inspect.getattr_static(kind, name)
        if isinstance(each, property) and name[0] != "_" and _is_ours(kind, name):
            answers = inspect.signature(each.fget).return_annotation if each.fget else EMPTY
            yield name, formatted(answers), inspect.getdoc(each) or ""


def _hints(kind: type[Any]) -> dict[str, Any]:
    if not (dataclasses.is_dataclass(kind) or is_typeddict(kind)):
        return {}
    return {
        name: hint
        for base in reversed(kind.__mro__)
        for name, hint in vars(base).get("__annotations__", {}).items()
    }


def _is_ours(kind: type[Any], name: str) -> bool:
    of = next(base for base in kind.__mro__ if name in vars(base))
    return of.__module__.startswith("shmbroker")


def told_of(kind: type[Any]) -> dict[str, str]:
    """The texts behind the fields of a class."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    found[field.target.id] = str(text.value.value)
    return found


def signature(name: str, each: Any) -> str:
    """As it is written in a program: without self."""
    whole = inspect.signature(each)
    shown: list[str] = []
    parameters = [each for key, each in whole.parameters.items() if key != "self"]
    is_bare = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            is_bare = True
        if parameter.kind is parameter.KEYWORD_ONLY and not is_bare:
            shown.append("*")
            is_bare = True
        shown.append(_parameter(parameter))
    answers = formatted(whole.return_annotation)
    end = f" -> {answers}" if answers else ""
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) <= LINE:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    hint = formatted(parameter.annotation)
    text = f"{stars}{parameter.name}" + (f": {hint}" if hint else "")
    if parameter.default is not EMPTY:
        text += (" = " if hint else "=") + repr(parameter.default)
    return text


def formatted(hint: Any) -> str:
    """A type hint as people write it."""
    if hint is EMPTY or hint is inspect.Signature.empty:
        return ""
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    if isinstance(hint, ForwardRef):
        text = hint.__forward_arg__
        if setting := SETTING.match(text):
            text = setting[1]
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    return MODULES.sub("", text).replace("NoneType", "None")
