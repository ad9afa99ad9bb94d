"""The files of the pages, read once: nothing else is ever served, whatever a path says."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOLDER: Final = Path(__file__).parent / "pages"
INDEX: Final = "index.html"


def files() -> dict[str, tuple[bytes, str]]:
    """Contents and types by name."""
    return {
        each.name: (each.read_bytes(), TYPES[each.suffix])
        for each in sorted(FOLDER.iterdir())
        if each.suffix in TYPES
    }
