"""A structure of the C interface, described once: its fields, and where kernels look for them.

The C text is written from this, and so are assertions that the compiler puts each field where
core/layout.py says it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.core import layout


@dataclass(frozen=True)
class Field:
    """A field as C declares it; `at` is the name of its offset in core/layout.py."""

    declared: str
    at: str
    comment: str = ""

    @property
    def name(self) -> str:
        return self.declared.split("[")[0].split()[-1].lstrip("*")

    def text(self) -> str:
        comment = f" /* {self.comment} */" if self.comment else ""
        return f"    {self.declared};{comment}\n"


@dataclass(frozen=True)
class Structure:
    """`bytes_at` is the name of its size in core/layout.py."""

    name: str
    comment: str
    bytes_at: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for name in (self.bytes_at, *(field.at for field in self.fields)):
            assert isinstance(getattr(layout, name), int), name

    def text(self) -> str:
        fields = "".join(field.text() for field in self.fields)
        return f"/* {self.comment} */\nstruct {self.name} {{\n{fields}}};\n"

    def assertions(self) -> str:
        """The compiler and core/layout.py agree."""
        lines = [
            f"_Static_assert(offsetof({self.name}, {field.name}) == L_{field.at},\n"
            f'               "core/layout.py: {field.at}");\n'
            for field in self.fields
        ]
        size = f"_Static_assert(sizeof({self.name}) == L_{self.bytes_at},\n"
        return "".join([*lines, f'{size}               "core/layout.py: {self.bytes_at}");\n'])
