"""Where the C library is: `python -m shmbroker.ipc.build.paths pkgconfig|include|library`."""

from __future__ import annotations

import sys
from pathlib import Path

PREFIX = Path(__file__).parents[2]
LIBRARY = "libshmbroker.so.0"
"""Its file, by its soname: the number is raised when a public function changes its meaning."""
PATHS = {
    "pkgconfig": PREFIX / "lib" / "pkgconfig",
    "include": PREFIX / "include",
    "library": PREFIX / "lib" / LIBRARY,
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PATHS:
        sys.stderr.write(f"usage: python -m shmbroker.ipc.build.paths {'|'.join(PATHS)}\n")
        return 2
    sys.stdout.write(f"{PATHS[arguments[0]]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
