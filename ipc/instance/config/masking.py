"""Masking: a secret in the configuration that is useless without mask.key.

Whoever sees only the configuration (in a ticket, a repository, over a shoulder) learns nothing.
Whoever can read the folder has the key, too: what protects from that is who may read it.

    masked = base64url(salt, text XOR stream, seal)

The stream is HMAC-SHA-256 of the salt and a counter; the seal, over salt and text, shows that the
key is the right one and that nothing was changed.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

FILE: Final = "mask.key"
KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
SEAL_BYTES: Final = 16
DIGEST_BYTES: Final = 32


def made_key(path: Path) -> bytes:
    """The key in this file, which is made if it is not there."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return key_of(path)
    with os.fdopen(file, "w") as made:
        made.write(secrets.token_hex(KEY_BYTES) + "\n")
        made.flush()
        os.fsync(file)
    return key_of(path)


def key_of(path: Path) -> bytes:
    """ValueError if there is none in this file."""
    try:
        key = bytes.fromhex(path.read_text())
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} holds no key: it was made by shmbroker mask")
    return key


def _part(key: bytes, what: bytes, content: bytes) -> bytes:
    return hmac.digest(key, what + content, "sha256")


def _mixed(key: bytes, salt: bytes, text: bytes) -> bytes:
    blocks = -(-len(text) // DIGEST_BYTES)
    counters = (number.to_bytes(4) for number in range(blocks))
    stream = b"".join(_part(key, b"stream", salt + counter) for counter in counters)
    return bytes(one ^ other for one, other in zip(text, stream, strict=False))


def masked(secret: str, key: bytes) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    mixed = salt + _mixed(key, salt, secret.encode())
    return base64.urlsafe_b64encode(mixed + _part(key, b"seal", mixed)[:SEAL_BYTES]).decode()


def unmasked(text: str, key: bytes) -> str:
    """ValueError if it is not of this key."""
    try:
        content = base64.b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        raise ValueError("this is not what shmbroker mask has made") from None
    mixed, seal = content[:-SEAL_BYTES], content[-SEAL_BYTES:]
    if not hmac.compare_digest(seal, _part(key, b"seal", mixed)[:SEAL_BYTES]):
        raise ValueError(f"this was masked with another key than the one in {FILE}")
    salt, text_mixed = mixed[:SALT_BYTES], mixed[SALT_BYTES:]
    return _mixed(key, salt, text_mixed).decode()
