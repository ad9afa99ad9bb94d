"""The public functions of the library, as programs call them: a generated C file.

Each calls the function of the same name within the library and hands its answer to sb_answered
(ipc/base/detail.c), so sb_detail never has words of an earlier call.  Calls from one part of the
library to another, and the kernels of ports, which have no words, do not go this way.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Function(NamedTuple):
    """One that answers a number or a code."""

    name: str
    parameters: str

    def prototype(self, prefix: str = "") -> str:
        return f"int64_t {prefix}{self.name}({self.parameters})"

    def arguments(self) -> str:
        """The names of its parameters."""
        return ", ".join(re.findall(r"(\w+)(?:, |$)", self.parameters))


WITHIN = "within_"
"""How their names begin in the library."""


def functions(text: str, kernels: set[str]) -> list[Function]:
    """Those that a header without comments declares, but for kernels and sb_version."""
    found = re.findall(r"^int64_t (\w+)\((.*?)\);$", text, re.DOTALL | re.MULTILINE)
    return [
        Function(name, " ".join(parameters.split()))
        for name, parameters in found
        if name not in kernels and parameters != "void"
    ]


def within(all_of_them: list[Function]) -> str:
    """For the C of ipc/, before the header: it defines and calls what is within."""
    return "".join(f"#define {each.name} {WITHIN}{each.name}\n" for each in all_of_them)


def source(all_of_them: list[Function]) -> str:
    """The functions that programs call."""
    text = '#include "shmbroker_private.h"\n'
    for each in all_of_them:
        text += f"""
{each.prototype(WITHIN)};
{each.prototype()}
{{
    return sb_answered({WITHIN}{each.name}({each.arguments()}));
}}
"""
    return text
