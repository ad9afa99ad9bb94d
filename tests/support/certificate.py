"""A certificate for this host, of an authority of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import trustme


def written(authority: trustme.CA, folder: Path) -> None:
    """As `certificate` and `key`."""
    made = authority.issue_cert("localhost", "127.0.0.1")
    made.cert_chain_pems[0].write_to_path(folder / "certificate")
    made.private_key_pem.write_to_path(folder / "key")
    (folder / "key").chmod(0o600)
