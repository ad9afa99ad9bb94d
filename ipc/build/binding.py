"""The cffi declarations of shmbroker.ipc._native, by which plain Python calls libshmbroker.

Run by setup.py.  API mode, against the stable ABI: bytes are passed as they are.

cffi lets other threads run during each call, by giving up the interpreter's lock and taking it
again.  That is some 40 ns, as long as publishing a message.  So the few calls that are often made,
and never wait, are once more in shmbroker.ipc._quick, which keeps the lock.  They look for a
message some LOOKS times at most; who finds none waits by _native.  So are those by which the
pager looks, and reads and seals a batch of its inbox: for each lock that it gives up it may wait
for another thread.  The verbs of queues that are called for each single message do without cffi
(ipc/message/taken.c).
"""

from __future__ import annotations

import re

from cffi import FFI

from shmbroker.ipc.build.header import declarations, enumerators, without_comments

binding = FFI()
binding.cdef(without_comments(enumerators() + declarations()))
binding.set_source(
    "shmbroker.ipc._native",
    '#include "shmbroker_private.h"',
    libraries=["shmbroker"],
    extra_link_args=["-Wl,-rpath,$ORIGIN/../lib"],
    py_limited_api=True,
)

QUICK = (
    "sb_port_publish",
    "sb_port_take_next",
    "sb_port_receive_next",
    "sb_port_ack",
    "sb_port_give_back",
    "sb_port_reject",
    "sb_give_back",
    "sb_reject",
    "sb_asked_end",
    "sb_reply_with",
    "sb_sleeper_watch",
    "sb_sleeper_rung",
    "sb_pager_ready",
    "sb_inbox_gather",
    "sb_records_seal",
    "sb_port_ring_has_room",
    "sb_paged_confirmed",
    "sb_paging_seen",
    "sb_paging_passed",
    "sb_paging_told",
    "sb_paging_end",
    "sb_inbox_release",
    "sb_port_true_tail",
    "sb_system_clock",
)

KEEPING_THE_LOCK = """
#include "shmbroker_private.h"
#undef Py_BEGIN_ALLOW_THREADS
#undef Py_END_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS {
#define Py_END_ALLOW_THREADS }
#undef _cffi_restore_errno
#undef _cffi_save_errno
#define _cffi_restore_errno() ((void)0)
#define _cffi_save_errno() ((void)0)
"""


def quick_declarations() -> str:
    """The prototypes of the quick calls, as the header has them."""
    wanted = re.compile(rf"^int64_t ({'|'.join(QUICK)})\(.*?;$", re.DOTALL | re.MULTILINE)
    return "\n".join(match.group() for match in wanted.finditer(declarations()))


quick = FFI()
quick.include(binding)
quick.cdef(quick_declarations())
quick.set_source(
    "shmbroker.ipc._quick",
    KEEPING_THE_LOCK,
    libraries=["shmbroker"],
    extra_link_args=["-Wl,-rpath,$ORIGIN/../lib"],
    py_limited_api=True,
)
