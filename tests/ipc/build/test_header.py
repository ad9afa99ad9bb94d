"""What shmbroker.h is made from: structures described once, and a digest of them."""

from __future__ import annotations

import re

import pytest

from shmbroker.core import layout
from shmbroker.ipc.base.structure import Structure
from shmbroker.ipc.build import header
from shmbroker.ipc.message.header import MESSAGE, OUTGOING
from shmbroker.ipc.ring.header import CURSOR


@pytest.mark.parametrize("structure", [MESSAGE, OUTGOING, CURSOR], ids=lambda each: each.name)
def test_every_offset_in_the_layout_is_that_of_a_field(structure: Structure) -> None:
    """And the compiler has asserted that they agree."""
    prefix = structure.bytes_at.removesuffix("BYTES")
    # what is below 0 is a value that a field may have
    offsets = {name for name, at in vars(layout).items() if re.match(prefix, name) and at >= 0}
    offsets -= {structure.bytes_at, f"{prefix}SHIFT"}
    assert {field.at for field in structure.fields} == offsets
    text = header.private_header()
    for field in structure.fields:
        assert f"offsetof({structure.name}, {field.name}) == L_{field.at}," in text


def test_the_digest_is_of_structures_only(monkeypatch: pytest.MonkeyPatch) -> None:
    before = header.layout_digest()
    monkeypatch.setattr(header, "ERRORS", "/* words */\nint64_t sb_one_more(void);\n")
    assert header.layout_digest() == before
    with_one_more = "struct sb_more {\n    int64_t each;\n};\n"
    monkeypatch.setattr(header, "ERRORS", with_one_more)
    assert header.layout_digest() != before
    monkeypatch.setattr(header, "ERRORS", with_one_more.replace("each;", "each; /* of them */"))
    commented = header.layout_digest()
    monkeypatch.setattr(header, "ERRORS", with_one_more)
    assert header.layout_digest() == commented


def test_a_version_is_a_number() -> None:
    assert header.version_number("1.2.3") == 1002003
    assert header.version_number("0.1") == 1000
    assert header.version_number("2.0.0.dev5") == 2000000


def test_a_symbol_is_public_or_private() -> None:
    assert not set(header.public_symbols()) & set(header.private_symbols())
    internals = re.compile(r"sb_(catalog|row|journal|journaler|pager|replay|restore|stripe)_")
    assert not [name for name in header.public_symbols() if internals.match(name)]
