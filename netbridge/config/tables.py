"""The tables of options in docs/configuration.md and docs/links.md, made from the options.

`python -m shmbroker.netbridge.config.tables` writes them anew, between the two comments of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.config.option import Option
from shmbroker.netbridge.config.config import ALL
from shmbroker.netbridge.plan.parameter import (
    ALIASES,
    DISCOVERY,
    FAILOVER,
    PIN,
    PROGRAM,
    SESSION,
    STATIC,
)

DOCS: Final = Path("docs")
PAGES: Final = ("configuration.md", "links.md")
PARAMETERS: Final = (*PIN, *STATIC, *FAILOVER, *SESSION, *DISCOVERY)


def shown(default: object) -> str:
    match default:
        case None:
            return "none"
        case bool():
            return f"`{str(default).lower()}`"
        case str():
            return f'`"{default}"`'
        case list():
            return f"`{default}`".replace("'", '"')
    return f"`{default}`"


def row(option: Option) -> str:
    default = shown(option.default)
    if option.name in PROGRAM and option.table == "failover:":
        default += f" (program: {shown(PROGRAM[option.name])})"
    if option.is_required:
        default = "required"
    bounds = option.kind.name + (f", {option.kind.allowed}" if option.kind.allowed else "")
    return f"| `{option.name}` | {default} | {option.help} | {bounds} |"


def of_options(options: Iterable[Option]) -> str:
    return "\n".join(
        ["| key | default | meaning | kind, bounds |", "|---|---|---|---|", *map(row, options)]
    )


def aliases() -> str:
    rows = [f"| `{alias}` | `{name}` |" for alias, name in ALIASES.items()]
    return "\n".join(["| AMQ | here |", "|---|---|", *rows])


def tables() -> dict[str, str]:
    names = dict.fromkeys(each.table for each in (*ALL, *PARAMETERS))
    found = {
        name: of_options(each for each in (*ALL, *PARAMETERS) if each.table == name)
        for name in names
    }
    return found | {"aliases": aliases()}


def renewed(text: str) -> str:
    """The page with its tables as they are today."""
    made = tables()
    return re.sub(
        r"<!-- table (\S+) -->.*?<!-- end of table -->",
        lambda found: f"<!-- table {found[1]} -->\n{made[found[1]]}\n<!-- end of table -->",
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    for name in PAGES:
        page = DOCS / name
        page.write_text(renewed(page.read_text()))


if __name__ == "__main__":
    main()
