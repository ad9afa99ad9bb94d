"""What cffi is told, to make shmbroker.ipc._native: libshmbroker as plain Python calls it.

Run by setup.py.  API mode, against the stable ABI: about 100 ns a call, and bytes are passed as
they are.
"""

from __future__ import annotations

import re

from cffi import FFI

from shmbroker.ipc.header import declarations, enumerators


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


binding = FFI()
binding.cdef(without_comments(enumerators() + declarations()))
binding.set_source(
    "shmbroker.ipc._native",
    '#include "shmbroker.h"',
    libraries=["shmbroker"],
    extra_link_args=["-Wl,-rpath,$ORIGIN/../lib"],
    py_limited_api=True,
)
