"""Print what an extra of pyproject.toml needs, one requirement a line: `build` is the builder."""

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    needed = list(project["project"]["dependencies"])
    for extra in extras:
        if extra == "build":
            needed += project["build-system"]["requires"]
        else:
            needed += project["project"]["optional-dependencies"][extra]
    sys.stdout.write("\n".join(dict.fromkeys(needed)) + "\n")


main(sys.argv[1:])
