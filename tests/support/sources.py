"""Import this first: modules are imported from their sources, not from what mypyc made of them.

Mutants of the machines are made of their sources, and tracebacks have their lines.  Processes that
tests start have the compiled ones, as users do; and so has a run of the tests with
SHMBROKER_TEST_COMPILED set, which leaves the mutants out.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)

ARE_IMPORTED = not os.environ.get("SHMBROKER_TEST_COMPILED")


def _of_netbridge(path: str) -> FileFinder:
    """Other packages have compiled modules beside their sources, too: pyzmq needs them."""
    if "/shmbroker/netbridge" not in path:
        raise ImportError
    sources = (SourceFileLoader, SOURCE_SUFFIXES)
    return FileFinder(path, sources, (ExtensionFileLoader, EXTENSION_SUFFIXES))


if ARE_IMPORTED:
    sys.path_hooks.insert(0, _of_netbridge)
    sys.path_importer_cache.clear()
