"""Changing single tables of shmbroker.toml: all else stays as people have written it.

The text is changed, and read again: if it does not say what it is to say, it is left to people.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance.config.config import ConfigError, toml_value

Tables = dict[str, Any]


class Edit:
    """Of a text; `text` is what it is then."""

    def __init__(self, place: Path, text: str) -> None:
        """`place`: the file, for messages.  ConfigError: it is no TOML."""
        self._place, self.text = place, text
        self._wanted = self._read(text)

    def put(self, table: str, key: str, value: object) -> None:
        """`table`: as in "credentials.apps", which is made if it is not there."""
        values = self._wanted
        for name in parts(table):
            values = values.setdefault(name, {})
        values[key] = _plain(value)
        line = f"{key} = {toml_value(value)}"
        block = self._block(table)
        if block is None:
            self.text = f"{self.text.rstrip()}\n\n[{header(table)}]\n{line}\n"
        else:
            self._replace(block, key, line + "\n")
        self._check(table)

    def drop_table(self, table: str) -> None:
        *outer, last = parts(table)
        values = self._wanted
        for name in outer:
            values = values.get(name, {})
        values.pop(last, None)
        if (block := self._block(table)) is not None:
            start, inside, end = block
            # comments before the next header are of that one
            end = inside + len(re.sub(r"(?:[ \t]*(?:#.*)?\n)*\Z", "", self.text[inside:end]))
            rest = self.text[end:].lstrip("\n")
            self.text = self.text[:start].rstrip("\n") + "\n" + (f"\n{rest}" if rest else "")
        if outer and not values:  # of the last one of its kind nothing is left
            self._wanted.pop(outer[0], None)
        self._check(table)

    def _block(self, table: str) -> tuple[int, int, int] | None:
        """Where its header begins, where that ends, and where the next table begins."""
        names = r"\s*\.\s*".join(_pattern(name) for name in parts(table))
        found = re.search(rf"(?m)^[ \t]*\[\s*{names}\s*\][ \t]*(#.*)?$\n?", self.text)
        if found is None:
            return None
        after = re.compile(r"(?m)^[ \t]*\[").search(self.text, found.end())
        return found.start(), found.end(), len(self.text) if after is None else after.start()

    def _replace(self, block: tuple[int, int, int], key: str, line: str) -> None:
        _, start, end = block
        inside = self.text[start:end]
        pattern = re.compile(rf"(?m)^[ \t]*{_pattern(key)}[ \t]*=.*$\n?")
        if pattern.search(inside):
            inside = pattern.sub(lambda _: line, inside, count=1)
        else:
            inside = line + inside
        self.text = self.text[:start] + inside + self.text[end:]

    def _check(self, table: str) -> None:
        try:
            is_right = self._read(self.text) == self._wanted
        except ConfigError:
            is_right = False
        if not is_right:
            raise ConfigError(
                f"{self._place}: [{table}] is written so that no program may change it: edit it, "
                "and shmbroker config reload"
            )

    def _read(self, text: str) -> Tables:
        try:
            return tomllib.loads(text)
        except ValueError as error:
            raise ConfigError(f"{self._place}: {error}") from None


def parts(table: str) -> list[str]:
    """Of "credentials.a.b": names may have dots."""
    outer, _, name = table.partition(".")
    return [outer, name] if name else [outer]


def header(table: str) -> str:
    return ".".join(
        each if re.fullmatch(r"[\w-]+", each, re.A) else toml_value(each) for each in parts(table)
    )


def _pattern(name: str) -> str:
    """As TOML may write it: bare, or in quotes."""
    plain = re.escape(name)
    return rf"(?:{plain}|\"{plain}\"|'{plain}')"


def _plain(value: object) -> Any:
    """As it is read again."""
    return list(value) if isinstance(value, tuple) else value
