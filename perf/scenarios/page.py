"""A report: one HTML page with its pictures in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

ROWS = 25
NOTHING = "-"

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff }
h1 { font-size: 1.7rem } h2 { font-size: 1.25rem; margin-top: 2.5rem }
img { max-width: 100%; height: auto; border: 1px solid #ddd }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .8rem; border-bottom: 1px solid #ddd; text-align: left }
td.n, th.n { text-align: right } .bad { font-weight: 600; color: #a33300 } .note { color: #555 }
pre { font-size: 13px; line-height: 1.35; overflow-x: auto; background: #f6f6f6; padding: .6rem }
"""


@dataclass(frozen=True)
class Drawing:
    """A picture, and what it says to whom cannot see it."""

    name: str
    text: str
    png: bytes


class Page:
    """HTML that grows from top to bottom."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.drawings: list[Drawing] = []

    def heading(self, text: str) -> None:
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def subheading(self, text: str) -> None:
        self.parts.append(f"<h3>{escape(text)}</h3>")

    def note(self, text: str) -> None:
        self.parts.append(f'<p class="note">{escape(text)}</p>')

    def alarm(self, text: str) -> None:
        self.parts.append(f'<p class="bad">{escape(text)}</p>')

    def text(self, text: str) -> None:
        """As it was printed."""
        self.parts.append(f"<pre>{escape(text)}</pre>")

    def draw(self, drawing: Drawing) -> None:
        data = b64encode(drawing.png).decode()
        text = escape(drawing.text, quote=True)
        self.parts.append(f'<p><img alt="{text}" src="data:image/png;base64,{data}"></p>')
        self.drawings.append(drawing)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Any]], *,
              every: bool = False) -> None:  # fmt: skip
        """The first rows, unless every one is wanted."""
        shown = rows if every else rows[:ROWS]
        numeric = [all(isinstance(row[i], int | float | Number) for row in rows) for i in
                   range(len(headers))]  # fmt: skip
        marks = ['class="n"' if is_number else "" for is_number in numeric]
        head = "".join(f"<th {m}>{escape(h)}</th>" for h, m in zip(headers, marks, strict=True))
        body = "".join(
            "<tr>" + "".join(cell(v, m) for v, m in zip(row, marks, strict=True)) + "</tr>"
            for row in shown
        )
        more = (
            f"{len(rows) - len(shown):,} more are in the tables." if len(rows) > len(shown) else ""
        )
        self.parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if more:
            self.note(more)

    def html(self, title: str) -> str:
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
            f"</title><style>{CSS}</style></head><body><h1>{escape(title)}</h1>"
            f"{''.join(self.parts)}</body></html>\n"
        )


@dataclass(frozen=True)
class Number:
    """A number as it is to be read."""

    text: str
    is_bad: bool = False


def cell(value: Any, mark: str) -> str:
    if isinstance(value, Number):
        inner = (
            f'<span class="bad">{escape(value.text)}</span>' if value.is_bad else escape(value.text)
        )
        return f"<td {mark}>{inner}</td>"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td {mark}>{escape(text)}</td>"


def readable(nanoseconds: float, _position: object = None) -> str:
    """850 ns, 1.2 µs, 30 ms."""
    for limit, unit, text in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if nanoseconds < limit:
            return f"{nanoseconds / unit:.3g} {text}"
    return f"{nanoseconds / 1e9:.3g} s"


def latency(nanoseconds: float | None) -> Number:
    return known(nanoseconds, readable)


def known(value: float | None, written: Callable[[float], str]) -> Number:
    return Number(NOTHING if value is None else written(value))
