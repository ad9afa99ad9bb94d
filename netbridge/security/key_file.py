"""Files of keys: the key pair of a broker, and the public keys of others with their roles.

key-file      one line: the secret key, 64 hexadecimal digits; nobody else may read it
known-keys    a line for each key: 64 hexadecimal digits, roles with commas, a name
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.trust import PRIVATE_MODE
from shmbroker.ipc.instance.config.secret import check_kept
from shmbroker.netbridge.security import curve
from shmbroker.netbridge.security.credential import KeyPair
from shmbroker.netbridge.security.option import roles_of
from shmbroker.netbridge.wire.words import Role


class KeyRefused(InvalidArgument):
    """A file of keys is not what it should be; the message says which line, never a secret."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    public: bytes
    roles: tuple[Role, ...]
    name: str

    @property
    def line(self) -> str:
        return f"{self.public.hex()} {','.join(role.value for role in self.roles)} {self.name}\n"


def create(path: Path) -> KeyPair:
    """A new pair; KeyRefused if there is a file already."""
    public, secret = curve.new_pair()
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
    except FileExistsError:
        raise KeyRefused(f"{path} is there already: remove it first, if nobody needs it") from None
    with os.fdopen(made, "w") as file:
        file.write(secret.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    return KeyPair(public, secret)


def read(path: Path) -> KeyPair:
    check_kept(path)
    try:
        text = path.read_bytes().strip()
    except OSError as error:
        raise KeyRefused(f"{path}: {error.strerror}") from None
    if not re.fullmatch(rb"[0-9a-f]{64}", text):
        raise KeyRefused(f"{path} holds no key: it is made by shmbroker key create")
    secret = bytes.fromhex(text.decode())
    return KeyPair(curve.public_of(secret), secret)


def public_key(text: str) -> bytes:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise KeyRefused("a public key has 64 hexadecimal digits, as shmbroker key show prints it")
    return bytes.fromhex(text)


def known(path: Path) -> tuple[KnownKey, ...]:
    """Empty if there is no such file: nobody is known yet."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise KeyRefused(f"{path}: {error.strerror}") from None
    check_kept(path)
    found = []
    for number, line in enumerate(lines, start=1):
        words = line.split(maxsplit=2)
        if not words or line.startswith("#"):
            continue
        try:
            roles = roles_of(words[1].split(",")) if len(words) > 1 else ()
            found.append(KnownKey(public_key(words[0]), roles, "".join(words[2:])))
        except ValueError as error:
            raise KeyRefused(f"{path}, line {number}: {error}") from None
    return tuple(found)


def trust(path: Path, key: KnownKey) -> None:
    """Add a key, or change the roles of one that is known."""
    others = [each for each in known(path) if each.public != key.public]
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_MODE)
    with os.fdopen(made, "w") as file:
        file.writelines(each.line for each in [*others, key])
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
