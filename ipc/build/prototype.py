"""Kernels as C declares them.

A parameter's C type follows from its name, which is the same everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from shmbroker.core.kernel import Kernel
from shmbroker.ipc.build.kernels import KERNELS

PARAMETER_TYPES = {
    "port": "sb_port *",
    "message": "sb_message *",
    "messages": "sb_message *",
    "cursor": "sb_cursor *",
    "body": "const void *",
    "outgoing": "const sb_outgoing *",
    "extension": "const int64_t *",
    "once": "const int64_t *",
    "bodies": "const void *",
    "buffer": "void *",
    "lengths": "const int64_t *",
    "positions": "const int64_t *",
    "transactions": "void *",
    "record": "void *",
    "committed": "void *",
    "steps": "int64_t *",
    "told": "int64_t *",
    "leases": "int64_t *",
    "places": "int64_t *",
    "copy": "void *",
    "ends": "int64_t *",
    "alive": "const uint64_t *",
    "bell": "int64_t *",
    "place": "void *",
    "ring": "void *",
    "arena": "void *",
    "catalog": "void *",
    "histograms": "void *",
    "recording": "int64_t *",
    "spinning": "int64_t *",
    "counts": "int64_t *",
    "sums": "int64_t *",
    "before": "const int64_t *",
    "indexes": "int64_t *",
    "name": "const void *",
    "key": "const void *",
    "pattern": "const void *",
    "properties": "const void *",
    "arguments": "const void *",
    "visited": "uint64_t *",
    "found": "int64_t *",
    "pouring": "int64_t *",
    "gathering": "sb_gathering *",
    "sealing": "sb_sealing *",
    "checking": "sb_checking *",
    "passing": "sb_passing *",
    "shipped": "const void *",
    "refilling": "sb_refilling *",
    "appending": "sb_appending *",
    "members": "const int64_t *",
    "chosen": "int64_t *",
    "selectors": "const void *",
    "copied": "int64_t *",
    "program": "const void *",
    "subject": "const sb_subject *",
    "memory": "int64_t *",
    "image": "const void *",
    "originals": "int64_t *",
    "reading": "int64_t *",
    "replica": "int64_t *",
    "replicas": "int64_t *",
}
RESULT_TYPES = {"loan_body": "void *", "received": "sb_message *", "arena_data": "void *"}


def symbol(kernel: Kernel) -> str:
    """What C programs call it: what is done to a port is named so."""
    of_port = kernel.parameters[:1] == ("port",) and not kernel.name.startswith("port_")
    return f"sb_port_{kernel.name}" if of_port else f"sb_{kernel.name}"


def prototype(kernel: Kernel) -> str:
    """One exported kernel as C declares it."""
    parameters = []
    for name in kernel.parameters:
        kind = PARAMETER_TYPES.get(name, "int64_t ")
        parameters.append(f"{kind}{name}" if kind.endswith("*") else f"int64_t {name}")
    result = RESULT_TYPES.get(kernel.name, "int64_t ")
    return f"{result}{symbol(kernel)}({', '.join(parameters) or 'void'});"


def exported_kernels() -> Iterator[Kernel]:
    return (each for each in KERNELS.values() if each.exported)


def declaration(kernel: Kernel) -> str:
    """Its prototype, and its docstring as comment."""
    text = inspect.getdoc(kernel.function)
    comment = f"/* {text} */\n" if text else ""
    return f"{comment}{prototype(kernel)}\n"
