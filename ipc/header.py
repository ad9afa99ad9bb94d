"""shmbroker.h: the C interface, written from the kernels themselves.

Every exported kernel becomes a prototype with its docstring as comment; codes and layout become
enumerators.  A parameter's C type follows from its name, which is the same everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from shmbroker.core import codes, layout
from shmbroker.core.kernel import Kernel
from shmbroker.ipc.kernels import KERNELS

PARAMETER_TYPES = {
    "port": "sb_port *",
    "message": "sb_message *",
    "messages": "sb_message *",
    "cursor": "sb_cursor *",
    "body": "const void *",
    "bodies": "const void *",
    "buffer": "void *",
    "lengths": "const int64_t *",
    "ends": "int64_t *",
    "alive": "const uint64_t *",
    "bell": "int64_t *",
    "ring": "void *",
    "arena": "void *",
    "catalog": "void *",
    "name": "const void *",
    "key": "const void *",
    "pattern": "const void *",
    "properties": "const void *",
    "arguments": "const void *",
    "visited": "uint64_t *",
    "found": "int64_t *",
}
RESULT_TYPES = {"loan_body": "void *", "received": "sb_message *", "arena_data": "void *"}

STRUCTURES = f"""\
/* One thread's view of one ring.  Private: do not look inside. */
typedef struct sb_port {{
    int64_t opaque[{layout.PORT_FILE // 8}];
    int64_t file;
    int64_t more[{(layout.PORT_BYTES - layout.PORT_FILE - 8) // 8}];
}} sb_port;

/* What a take tells.  `body` is valid until the message is acknowledged or given back. */
typedef struct sb_message {{
    int64_t position;
    int64_t word;
    const void *body;
    int64_t length;
    const void *chunk;
    int64_t shape;
    int64_t mark;
    int64_t offset;
}} sb_message;

/* A subscriber's place. */
typedef struct sb_cursor {{
    sb_port *port;
    int64_t position;
    int64_t gate;
    int64_t missed;
}} sb_cursor;

/* A ring and its arena, attached to this process. */
typedef struct sb_ring sb_ring;
"""

SEGMENTS = """\
/* Make a ring of so many slots, a power of two, with an arena of so many bytes. */
int64_t sb_ring_create(const char *name, int64_t slots, int64_t arena_bytes, int64_t flags);
/* Map a ring and its arena, after checking both. */
int64_t sb_ring_attach(const char *name, sb_ring **ring);
/* Open the port of one thread; owner is from 1 to 4095. */
int64_t sb_ring_port(sb_ring *ring, int64_t owner, sb_port *port);
/* Unmap; all its ports must be closed. */
void sb_ring_detach(sb_ring *ring);
/* Remove the names; who has the ring attached keeps it. */
int64_t sb_ring_remove(const char *name);
/* What a code means. */
const char *sb_strerror(int64_t code);
/* The system calls of the library. */
int64_t sb_system_allocate(int64_t file, int64_t offset, int64_t length);
int64_t sb_system_yield(void);
int64_t sb_system_wait(int64_t address, int64_t value, int64_t timeout_ns);
int64_t sb_system_wake(int64_t address, int64_t count);
int64_t sb_system_clock(void);
"""


def code_names() -> dict[str, int]:
    """The names of all codes, SB_ left off."""
    return {name: value for name, value in vars(codes).items() if isinstance(value, int)}


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


def declarations() -> str:
    """Structures and prototypes, as C and cffi both read them."""
    parts = [STRUCTURES, SEGMENTS]
    for kernel in exported_kernels():
        text = inspect.getdoc(kernel.function)
        comment = f"/* {text} */\n" if text else ""
        parts.append(f"{comment}{prototype(kernel)}\n")
    return "\n".join(parts)


def enumerators() -> str:
    """The codes, and the few numbers of the layout that programs need."""
    lines = [f"    SB_{name} = {value}," for name, value in code_names().items()]
    lines += [
        f"    SB_BROADCAST = {layout.RING_BROADCAST},",
        f"    SB_GATE_FLEETING = {layout.GATE_FLEETING},",
        f"    SB_GATE_LASTING = {layout.GATE_LASTING},",
        f"    SB_ROUTE_VISITED_BYTES = {layout.ROUTE_VISITED_BYTES},",
    ]
    return "enum {\n" + "\n".join(lines) + "\n};\n"


def header() -> str:
    """The whole of shmbroker.h."""
    return f"""\
/* shmbroker.h: rings of messages in shared memory.  Generated from the kernels: do not edit.
 *
 * Functions return a number of their own, 0 for done, or a negative code: see sb_strerror.
 * A port, a message and a cursor belong to one thread at a time; a ring may be shared. */

#ifndef SHMBROKER_H
#define SHMBROKER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{enumerators()}
{declarations()}
#ifdef __cplusplus
}}
#endif

#endif
"""


def strerror_source() -> str:
    """sb_strerror in C, with the texts of codes.py."""
    texts = {name: codes.TEXTS[value] for name, value in code_names().items()}
    cases = "\n".join(f'    case SB_{name}: return "{text}";' for name, text in texts.items())
    return f"""\
#include "shmbroker.h"

const char *sb_strerror(int64_t code)
{{
    switch (code) {{
{cases}
    default: return code >= 0 ? "done" : "unknown code";
    }}
}}
"""
