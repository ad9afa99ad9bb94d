"""What `shmbroker` and `shmbroker.aio` offer by name."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys

import pytest

import shmbroker
import shmbroker.aio
from shmbroker.ipc import aio as faces

TYPE = re.compile(r"\b[A-Z]\w+\b")
PYTHON = {"Any", "None", "Literal", "Unpack", "Self", "Iterator", "Iterable", "Mapping", "Callable"}
INTERNAL = {"Port", "Ring"}
"""For compiled loops; what they answer is theirs alone."""


def named_in_signatures(of: type) -> set[str]:
    """The types that the public verbs of a class name."""
    found: set[str] = set()
    for name, each in inspect.getmembers(of):
        verb = each.fget if isinstance(each, property) else each
        if name[0] != "_" and inspect.isfunction(verb):
            found |= {str(value) for value in verb.__annotations__.values()}
    return {word for text in found for word in TYPE.findall(text)} - PYTHON


def test_every_type_of_a_public_verb_can_be_imported() -> None:
    for name in set(shmbroker.__all__) - INTERNAL:
        each = getattr(shmbroker, name)
        if inspect.isclass(each) and not issubclass(each, BaseException):
            assert named_in_signatures(each) <= set(shmbroker.__all__), name


def test_asyncio_has_what_both_share() -> None:
    only_sync = {"Port", "QueueLoan", "Ring", "Spool", "Spooled", "aio", "vhost", "__version__"}
    assert set(shmbroker.aio.__all__) == (set(shmbroker.__all__) - only_sync) | set(faces.__all__)
    for name in shmbroker.aio.__all__:
        if name in ("cluster", "connect"):  # of any uri: over a link as well
            continue
        ours = faces if name in faces.__all__ else shmbroker
        assert getattr(shmbroker.aio, name) is getattr(ours, name)


def test_the_version() -> None:
    assert shmbroker.__version__ == importlib.metadata.version("shmbroker")


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_kernels_without_numba_say_which_extra(missing: str) -> None:
    program = f"""
import sys
sys.modules[{missing!r}] = None
import shmbroker.kernels
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'shmbroker[numba]'" in done.stderr
