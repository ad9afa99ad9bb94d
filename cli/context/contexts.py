"""The contexts of this user: `~/.config/shmbroker/contexts.toml`, which nobody else may read.

    current = "orders"

    [contexts."orders"]
    url = "tcp://127.0.0.1:61616"
    user = "programs"
    password = { file = "/var/lib/shmbroker/orders/programs.password" }
    folder = "/var/lib/shmbroker/orders"

Commands that change it do so one after the other, and replace it as a whole.
"""

from __future__ import annotations

import fcntl
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, Final

from shmbroker.cli.suggestion import did_you_mean
from shmbroker.ipc.base.errors import InvalidArgument, InvalidName
from shmbroker.ipc.base.trust import SEGMENTS, content_of, make_folder, opened
from shmbroker.ipc.instance.config.config import FILE as CONFIGURATION
from shmbroker.ipc.instance.config.config import toml_value
from shmbroker.ipc.instance.config.secret import PLAIN, Secret, secret_of
from shmbroker.ipc.instance.whole import write_text

FOLDER: Final = "shmbroker"
FILE: Final = "contexts.toml"
LOCK: Final = "contexts.lock"
HOME: Final = "XDG_CONFIG_HOME"
SHARED: Final = "shm://"
THIS_HOST: Final = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}
KEYS: Final = frozenset({"url", "user", "password", "folder"})


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    url: str
    user: str = ""
    password: Secret | None = None
    folder: Path | None = None
    """Of an instance on this host."""

    @property
    def is_over_link(self) -> bool:
        return not self.url.startswith(SHARED)

    @property
    def is_there(self) -> bool:
        """Its instance was not deleted; of one on another host nothing is known."""
        return self.folder is None or (self.folder / CONFIGURATION).is_file()

    @property
    def kept(self) -> str:
        """Where the password is."""
        if self.password is None:
            return ""
        is_place = self.password.kind in ("env", "file")
        return f"{self.password.kind} {self.password.content}" if is_place else self.password.kind

    def revealed(self) -> str | None:
        key = f"{place()}: contexts.{self.name}.password"
        return None if self.password is None else self.password.revealed(key, place().parent)

    def lines(self) -> Iterator[str]:
        yield f"[contexts.{toml_value(self.name)}]"
        yield f"url = {toml_value(self.url)}"
        if self.user:
            yield f"user = {toml_value(self.user)}"
        if self.password is not None:
            kind, content = self.password.kind, self.password.content
            yield f"password = {toml_value(content if kind == PLAIN else {kind: content})}"
        if self.folder is not None:
            yield f"folder = {toml_value(str(self.folder))}"


@dataclass(slots=True)
class Contexts:
    by_name: dict[str, Context] = field(default_factory=dict)
    """The newest last."""
    current: str = ""

    def named(self, name: str) -> Context:
        if name not in self.by_name:
            meant = did_you_mean(name, self.by_name) or "make it: shmbroker context add"
            raise InvalidName(f"there is no context {name!r}: {meant}")
        return self.by_name[name]

    def used(self, name: str) -> Context:
        """To be used by a command."""
        context = self.named(name)
        if not context.is_there:
            raise InvalidName(
                f"the instance of context {name!r}, {context.folder}, was deleted: forget it, "
                f"shmbroker context remove {quote(name)}, or take another, shmbroker context use"
            )
        return context

    def of_url(self, url: str, user: str = "") -> Context | None:
        """That knows the password of this broker: the current one, or else the newest."""
        wanted = addresses(url)
        fit = [
            each for each in self.by_name.values()
            if each.is_over_link and each.password is not None and each.is_there
            and user in ("", each.user) and wanted & addresses(each.url)
        ]  # fmt: skip
        newest = fit[-1] if fit else None
        return next((each for each in fit if each.name == self.current), newest)

    def of_folder(self, folder: Path) -> Context | None:
        return next((each for each in self.by_name.values() if each.folder == folder), None)

    def free(self, name: str) -> str:
        """This name, or with a number behind it: that of another instance is left to it."""
        number, wanted = 1, name
        while name in self.by_name and self.by_name[name].is_there:
            number += 1
            name = f"{wanted}-{number}"
        return name

    def put(self, context: Context) -> None:
        self.by_name.pop(context.name, None)
        self.by_name[context.name] = context

    @property
    def text(self) -> str:
        lines = ["# Written by shmbroker context and shmbroker create.", ""]
        lines += [f"current = {toml_value(self.current)}", ""] if self.current else []
        for each in self.by_name.values():
            lines += [*each.lines(), ""]
        return "\n".join(lines)


def addresses(url: str) -> frozenset[tuple[str, int]]:
    """Of the brokers that it names; none of one in shared memory, or that is to be found."""
    from shmbroker.netbridge.client.connecting import USER
    from shmbroker.netbridge.plan.text import parse
    from shmbroker.netbridge.plan.uri import singles

    if url.startswith(SHARED):
        return frozenset()
    named = singles(parse(USER.sub("tcp://", url)))
    return frozenset((THIS_HOST.get(each.host, each.host), each.port) for each in named)


def place() -> Path:
    """Of the file; an XDG_CONFIG_HOME that is no absolute path is ignored, as its standard says."""
    home = Path(os.environ.get(HOME, ""))
    return (home if home.is_absolute() else Path.home() / ".config") / FOLDER / FILE


def read() -> Contexts:
    """InvalidArgument: it is none; Untrusted: others may read or change it."""
    file = place()
    try:
        text = content_of(file, SEGMENTS).decode()
    except FileNotFoundError:
        return Contexts()
    try:
        return contexts_of(tomllib.loads(text))
    except ValueError as error:
        raise InvalidArgument(f"{file}: {error}: correct it, or remove it") from None


def contexts_of(told: Mapping[str, Any]) -> Contexts:
    """ValueError says what is wrong."""
    if other := told.keys() - {"current", "contexts"}:
        raise ValueError(f"{sorted(other)[0]!r} is no key of it")
    rows, current = told.get("contexts", {}), told.get("current", "")
    if not isinstance(rows, dict) or not isinstance(current, str):
        raise ValueError("current is a name, and contexts are tables")
    return Contexts({name: context_of(name, row) for name, row in rows.items()}, current)


def context_of(name: str, row: object) -> Context:
    if not isinstance(row, dict) or not isinstance(row.get("url"), str):
        raise ValueError(f"contexts.{name} has no url")
    if other := row.keys() - KEYS:
        raise ValueError(f"{sorted(other)[0]!r} is no key of contexts.{name}")
    user, folder = row.get("user", ""), row.get("folder")
    if not isinstance(user, str) or not isinstance(folder, str | None):
        raise ValueError(f"user and folder of contexts.{name} are text")
    password = None if "password" not in row else secret_of(row["password"])
    return Context(name, row["url"], user, password, None if folder is None else Path(folder))


@contextmanager
def changing() -> Iterator[Contexts]:
    """What is changed in it is written; whoever else changes it waits."""
    file = place()
    make_folder(file.parent)
    lock = opened(file.with_name(LOCK), os.O_RDWR | os.O_CREAT, SEGMENTS)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        contexts = read()
        yield contexts
        write_text(file, contexts.text)
    finally:
        os.close(lock)


def instance_named(name: str) -> Path | None:
    """The folder of the instance that a context of this name has."""
    found = read().by_name.get(name)
    return None if found is None else found.folder
