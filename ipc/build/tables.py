"""Tables of the documentation that are made from tables in the code.

`python -m shmbroker.ipc.build.tables` writes them anew, between the two comments of each.
"""

from __future__ import annotations

import re
from pathlib import Path

from shmbroker.core import codes
from shmbroker.ipc.base.errors import ERRORS
from shmbroker.ipc.build.header import PRIVATE_CODES, code_names
from shmbroker.ipc.settings.setting import SETTINGS, Setting

DOCS = Path("docs")


def value(default: object) -> str:
    match default:
        case None:
            return "none"
        case bool():
            return "yes" if default else "no"
        case int() | float():
            return f"{default:,g}" if isinstance(default, float) else f"{default:,}"
    return str(default)


def default(setting: Setting) -> str:
    return value(setting.default) + (
        " s" * (setting.kind == "seconds" and setting.default is not None)
    )


def settings() -> str:
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for each in SETTINGS:
        name = f"[`{each.name}`]({each.page})"
        meaning = " ".join(each.help.split())
        if each.choices:
            meaning += f" {', '.join(f'`{choice}`' for choice in each.choices)}."
        if each.is_of_patterns:
            meaning += " For patterns only."
        lines.append(f"| {name} | {default(each)} | {meaning} |")
    return "\n".join(lines)


def errors() -> str:
    lines = ["| C | Python | meaning |", "|---|---|---|"]
    for name, code in sorted(code_names().items(), key=lambda each: -each[1]):
        if name not in PRIVATE_CODES and code in ERRORS:
            text = codes.TEXTS[code]
            lines.append(f"| `SB_{name}` ({code}) | `{ERRORS[code].__name__}` | {text} |")
    return "\n".join(lines)


TABLES = {"settings.md": settings, "errors.md": errors}


def renewed(name: str, text: str) -> str:
    """The page with its table as it is today."""
    table = f"<!-- table -->\n{TABLES[name]()}\n<!-- end of table -->"
    return re.sub("<!-- table -->.*<!-- end of table -->", lambda _: table, text, flags=re.DOTALL)


def main() -> None:
    for name in TABLES:
        page = DOCS / name
        page.write_text(renewed(name, page.read_text()))


if __name__ == "__main__":
    main()
