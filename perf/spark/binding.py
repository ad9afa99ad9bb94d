"""What cffi is told, to make shmbroker.perf.spark._native of the C beside it.  Run by setup.py.

Not Numba, as each of Spark's worker processes would import it and load what it compiled: 0.7 s,
as long as 100,000 intervals take.  API mode, against the stable ABI.
"""

from __future__ import annotations

import re
from pathlib import Path

from cffi import FFI

HERE = Path("perf/spark")
HEADER = HERE / "spool.h"


def declarations(header: str) -> str:
    """Without comments and what is the preprocessor's."""
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return re.sub(r"^#.*\n", "", header, flags=re.MULTILINE)


binding = FFI()
binding.cdef(declarations(HEADER.read_text()))
binding.set_source(
    "shmbroker.perf.spark._native",
    '#include "spool.h"',
    include_dirs=[str(HERE)],
    sources=[str(HERE / name) for name in ("lines.c", "counts.c")],
    depends=[str(HEADER)],
    extra_compile_args=["-O3", "-Wall", "-Wextra"],
    py_limited_api=True,
)
