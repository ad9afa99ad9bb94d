"""The C interface: shmbroker.h, which is installed, and shmbroker_private.h, which is not.

Each room says what it offers to C programs, in a module `header`; structures that kernels read are
described there by their fields, the kernels' prototypes come from the kernels themselves.  What
Python, Numba and the C of ipc/ need beyond that is private: it changes with every build.
"""

from __future__ import annotations

import hashlib
import re

from shmbroker.core import codes, layout, opcodes
from shmbroker.ipc.broker.applier_header import APPENDING, APPLIER
from shmbroker.ipc.broker.journaler_header import JOURNALER
from shmbroker.ipc.build.paths import LIBRARY
from shmbroker.ipc.build.prototype import declaration, exported_kernels, symbol
from shmbroker.ipc.connection import header as connection
from shmbroker.ipc.exchange import header as exchange
from shmbroker.ipc.follower import header as follower
from shmbroker.ipc.journal import shipping_header as shipping
from shmbroker.ipc.journal.end_header import END
from shmbroker.ipc.journal.header import JOURNAL, journal_enumerators
from shmbroker.ipc.message import header as message
from shmbroker.ipc.paging import header as paging
from shmbroker.ipc.queue import header as queue
from shmbroker.ipc.queue_replica.header import QUEUE_REPLICAS
from shmbroker.ipc.request import header as request
from shmbroker.ipc.ring import header as ring
from shmbroker.ipc.schedule import header as schedule
from shmbroker.ipc.selector import header as selector
from shmbroker.ipc.settings import header as settings
from shmbroker.ipc.settings.setting import SETTINGS
from shmbroker.ipc.sink.header import SINK
from shmbroker.ipc.transaction import header as transaction

PUBLIC_NODE = f"SHMBROKER_{LIBRARY.rpartition('.')[2]}"

OPAQUE = {
    "sb_connection": "This process as a participant of a vhost.",
    "sb_queue": "A queue, through a connection.",
    "sb_exchange": "An exchange, through a connection.",
    "sb_transaction": "Publishes and acknowledgements that happen together or not at all.",
    "sb_port": "One thread's view of a queue.",
}
"""Structures of which programs hold the address."""

ERRORS = """\
/* --- errors --- */

/* What a code means. */
const char *sb_strerror(int64_t code);
/* More about the code that this thread was answered last: which object, what to do.  Or "".  Of a
 * code about which there is no more to say, these may be the words for the same code in an earlier
 * call. */
const char *sb_detail(int64_t code);
/* The version of the library, as SB_VERSION is that of this header. */
int64_t sb_version(void);
"""

CHAPTERS = (
    message.PUBLIC,
    connection.PUBLIC,
    queue.QUEUES,
    queue.PUBLISHING,
    selector.PUBLIC,
    queue.TAKING,
    queue.LOANS,
    request.PUBLIC,
    exchange.EXCHANGES,
    transaction.PUBLIC,
    queue.CURSORS,
    exchange.SUBSCRIPTIONS,
    schedule.PUBLIC,
    settings.PUBLIC,
    queue.MOVING,
    queue.WAITING,
    ring.PORTS,
)
PRIVATE_CHAPTERS = (
    connection.PRIVATE,
    queue.PRIVATE,
    ring.PRIVATE,
    request.PRIVATE,
    transaction.PRIVATE,
    JOURNAL,
    END,
    shipping.SHIPPING,
    JOURNALER,
    APPLIER,
    paging.PAGER,
    paging.SLEEPER,
    SINK,
    follower.FOLLOWER,
    QUEUE_REPLICAS,
)

CHECKED = ("sb_connect", "sb_observe")
"""Where a program comes in: each hands over what it was compiled with."""

PRIVATE_CODES = {"UNDECIDED", "NEEDS_COMMIT", "SLEPT", "ASSIGNED"}
"""Answers of one part of the library to another."""

FOREVER_NS = 1 << 62
EVERY_POSITION = 1 << 48


def code_names() -> dict[str, int]:
    """The names of all codes, SB_ left off."""
    return {name: value for name, value in vars(codes).items() if isinstance(value, int)}


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def _typedefs(*chapters: str) -> str:
    """Names of the structures that are defined somewhere below."""
    names = re.findall(r"^struct (\w+) \{", "\n".join(chapters), re.MULTILINE)
    return "".join(f"typedef struct {name} {name};\n" for name in names)


def _kernels(public: bool) -> str:
    chosen = {f"sb_{name}" for name in ring.PUBLIC_KERNELS}
    kernels = [each for each in exported_kernels() if (symbol(each) in chosen) == public]
    return "\n".join(declaration(each) for each in kernels)


def public_declarations() -> str:
    """Structures and prototypes that programs use, as C and cffi both read them."""
    opaque = "".join(
        f"/* {what} */\ntypedef struct {name} {name};\n" for name, what in OPAQUE.items()
    )
    parts = (opaque + _typedefs(*CHAPTERS), *CHAPTERS, _kernels(public=True), ERRORS)
    return "\n".join(parts)


def private_declarations() -> str:
    """What only this build's own parts use; public_declarations come before."""
    names = _typedefs(*PRIVATE_CHAPTERS).replace("typedef struct sb_port sb_port;\n", "")
    return "\n".join((names, *PRIVATE_CHAPTERS, _kernels(public=False)))


def declarations() -> str:
    """All of it, as cffi reads it."""
    return public_declarations() + private_declarations()


def _enumeration(lines: list[str]) -> str:
    return "enum {\n" + "\n".join(lines) + "\n};\n"


def _codes(public: bool) -> list[str]:
    return [
        f"    SB_{name} = {value}, /* {codes.TEXTS[value]} */"
        for name, value in code_names().items()
        if (name not in PRIVATE_CODES) == public
    ]


def public_enumerators() -> str:
    """The codes, and the numbers that settings and arguments may be."""
    lines = [*_codes(public=True), *settings.enumerators(), *queue.enumerators()]
    return f"#define SB_FOREVER {FOREVER_NS}\n" + _enumeration([*lines, *ring.enumerators()])


def private_enumerators() -> str:
    lines = [*_codes(public=False), *ring.private_enumerators(), *journal_enumerators()]
    lines += follower.private_enumerators()
    return f"#define SB_JOURNAL_ALL {EVERY_POSITION}\n" + _enumeration(lines)


def enumerators() -> str:
    """All numbers, as cffi reads them."""
    return public_enumerators() + private_enumerators()


def layout_digest() -> str:
    """Changes when a public structure does, or the order of its fields."""
    text = without_comments(public_declarations())
    structures = re.findall(r"^struct \w+ \{.*?^\};", text, re.DOTALL | re.MULTILINE)
    together = " ".join("\n".join(structures).split())
    return hashlib.sha256(together.encode()).hexdigest()[:16]


def version_number(version: str) -> int:
    """1.2.3 as 1002003; what comes behind that in a version is left off."""
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]] + [0, 0, 0]
    return parts[0] * 1_000_000 + parts[1] * 1_000 + parts[2]


def compiled_name(name: str) -> str:
    """The symbol that a checked function is behind its header's back."""
    return f"{name}_compiled"


def _checked(text: str) -> str:
    """The prototypes of CHECKED as inline functions that say what they were compiled with."""
    for name in CHECKED:
        found = re.search(rf"^int64_t {name}\((.*?)\);$", text, re.DOTALL | re.MULTILINE)
        assert found is not None, name
        parameters = " ".join(found[1].split())
        names = ", ".join(re.findall(r"(\w+)(?:, |$)", parameters))
        inline = (
            f"static inline int64_t {name}({parameters})\n{{\n"
            f"    return {compiled_name(name)}(SB_VERSION, SB_LAYOUT, {names});\n}}"
        )
        prototype = f"int64_t {compiled_name(name)}(int64_t version, uint64_t layout,\n"
        prototype += f"{' ' * prototype.index('(')} {parameters});\n"
        text = text.replace(found[0], inline)
        comment = text.rindex("/*", 0, text.index(inline))
        text = text[:comment] + prototype + text[comment:]
    return text


def header(version: str) -> str:
    """The whole of shmbroker.h."""
    return f"""\
/* shmbroker.h: messages between processes, through shared memory.  Generated: do not edit.
 *
 * Functions answer 0 or a number of their own, or a code, which is less than 0: see sb_strerror.
 * Connections, queues and exchanges may be used by all threads of a process; a message, a cursor, a
 * loan and a transaction by one thread at a time.  At most 64 threads and loans of a process are in
 * one queue at the same time: SB_TOO_MANY_LOANS.
 * Time-outs are in nanoseconds: 0 does not wait, SB_FOREVER (or less than 0) waits without end.
 * A wait that a signal interrupts answers SB_INTERRUPTED: call again to wait on. */

#ifndef SHMBROKER_H
#define SHMBROKER_H

#include <stdint.h>

/* 1.2.3 is 1002003. */
#define SB_VERSION {version_number(version)}
/* Of the structures below: sb_connect answers SB_OTHER_HEADER if the library has others. */
#define SB_LAYOUT UINT64_C(0x{layout_digest()})
#define SB_PRIORITY(level) ((level) + 1)

#ifdef __cplusplus
extern "C" {{
#endif
#pragma GCC visibility push(default)

{public_enumerators()}
{_checked(public_declarations())}
#pragma GCC visibility pop
#ifdef __cplusplus
}}
#endif

#endif
"""


def private_header() -> str:
    """shmbroker_private.h: for the C of ipc/, the Python extensions and tests of internals."""
    known = (message.MESSAGE, message.OUTGOING, selector.SUBJECT, ring.CURSOR, ring.PORT)
    more = (*shipping.FRAMES, *paging.BATCHES, APPENDING)
    assertions = "\n".join(each.assertions() for each in (*known, *more))
    return f"""\
/* What shmbroker.h leaves out.  Generated: do not edit. */

#ifndef SHMBROKER_PRIVATE_H
#define SHMBROKER_PRIVATE_H

#include <stddef.h>

#include "layout.h"
#include "shmbroker.h"

#pragma GCC visibility push(default)

{private_enumerators()}
{private_declarations()}
#pragma GCC visibility pop

{assertions}
#endif
"""


def layout_source() -> str:
    """layout.py, opcodes.py and the places of settings for C: L_ or OP_, and the name."""
    lines = []
    for prefix, module in (("L", layout), ("OP", opcodes)):
        numbers = {name: value for name, value in vars(module).items() if isinstance(value, int)}
        lines += [f"#define {prefix}_{name} INT64_C({value})" for name, value in numbers.items()]
    lines += [
        f"#define L_SETTING_{each.name.upper()}_AT INT64_C({each.at})"
        for each in SETTINGS
        if not hasattr(layout, f"SETTING_{each.name.upper()}_AT")
    ]
    return "\n".join(lines) + "\n"


def strerror_source() -> str:
    """sb_strerror in C, with the texts of codes.py."""
    texts = {name: codes.TEXTS[value] for name, value in code_names().items()}
    cases = "\n".join(f'    case SB_{name}: return "{text}";' for name, text in texts.items())
    return f"""\
#include "shmbroker_private.h"

const char *sb_strerror(int64_t code)
{{
    switch (code) {{
{cases}
    default: return code >= 0 ? "done" : "unknown code";
    }}
}}
"""


def sources() -> dict[str, str]:
    """The generated C beside shmbroker.h, with which the C of ipc/ is compiled."""
    return {
        "layout.h": layout_source(),
        "settings_table.h": settings.table(),
        "shmbroker_private.h": private_header(),
        "strerror.c": strerror_source(),
    }


def _symbols(text: str) -> list[str]:
    names = set(re.findall(r"\b(sb_\w+)\(", without_comments(text)))
    return sorted({compiled_name(name) if name in CHECKED else name for name in names})


def public_symbols() -> list[str]:
    return _symbols(public_declarations())


def private_symbols() -> list[str]:
    return _symbols(private_declarations())


def version_script(build: str) -> str:
    """Which symbols the linker shows: public ones, and those that go with this build only."""

    def listed(names: list[str]) -> str:
        return "".join(f"        {name};\n" for name in names)

    return f"""\
{PUBLIC_NODE} {{
    global:
{listed(public_symbols())}    local:
        *;
}};
SHMBROKER_PRIVATE_{build} {{
    global:
{listed(private_symbols())}}};
"""
