"""The pictures of a report, as matplotlib draws them: no display needed.

Colours are Okabe and Ito's and cividis, which colour-blind people can tell apart; lines differ by
their dashes too.  Latency is logarithmic everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, DateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from shmbroker.perf.machine.size import format_size
from shmbroker.perf.scenarios.page import readable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
HATCHES = ("", "//", "..", "xx", "\\\\", "++")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
STYLE = {
    "font.size": 11, "axes.titlesize": 13, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.grid": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "axes.axisbelow": True,
}  # fmt: skip
LADDER = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
BINS = 48
LABEL = 32
DAY_SECONDS = 86400


@dataclass(frozen=True)
class Curve:
    """Buckets of one histogram: their highest values, ascending, and how many are in each."""

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, histogram: Iterable[tuple[int, int]]) -> Curve:
        """Of what a histogram yields."""
        values, counts = zip(*histogram, strict=True)
        return cls(np.array(values), np.array(counts))

    @property
    def up_to(self) -> np.ndarray:
        return np.asarray(np.cumsum(self.counts) / self.counts.sum())


def drawn(width: float = 10.0, height: float = 5.2) -> tuple[Figure, Axes]:
    with mpl.rc_context(STYLE):
        figure = Figure((width, height), dpi=110, layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.add_subplot()


def png(figure: Figure) -> bytes:
    with mpl.rc_context(STYLE):
        out = BytesIO()
        figure.savefig(out, format="png")
        return out.getvalue()


def latency_axis(axis: Axes, low: float, high: float) -> None:
    """Logarithmic, with as many numbers as are legible."""
    axis.set_yscale("log")
    low, high = max(low, 1.0), max(high, low * 2, 2.0)
    axis.set_ylim(low * 0.9, high * 1.1)
    steps = (1, 2, 5) if high / low < 2000 else (1,)
    ticks = [
        s * 10.0**e for e in range(0, 19) for s in steps if low * 0.9 <= s * 10**e <= high * 1.1
    ]
    axis.yaxis.set_major_locator(FixedLocator(ticks))
    axis.yaxis.set_major_formatter(FuncFormatter(readable))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel(f"latency, {readable(low)} to {readable(high)} (log scale)")


def percentile_curves(curves: Mapping[str, Curve], title: str, *, of: str = "messages") -> bytes:
    """Latency over percentile, logarithmic towards 100 %: 99 to 99.9 is as wide as 90 to 99."""
    figure, axis = drawn()
    nines_max = 0.5
    lows, highs = [], []
    for number, (name, curve) in enumerate(curves.items()):
        # a step ends at the share up to its bucket; the last one at that of its last message
        total = float(curve.counts.sum())
        rest = np.maximum(1 - curve.up_to, 0.5 / total)
        nines = -np.log10(rest)
        nines_max = max(nines_max, float(nines[-1]))
        axis.step(
            np.concatenate([[0], nines]), np.concatenate([curve.values[:1], curve.values]),
            where="pre", label=plain(f"{name}  ({total:,.0f} {of})"), **pen(number),
        )  # fmt: skip
        lows.append(float(curve.values[0]))
        highs.append(float(curve.values[-1]))
    ticks = [p for p in LADDER if -np.log10(1 - p / 100) <= nines_max + 0.05]
    axis.set_xticks([-np.log10(1 - p / 100) for p in ticks], [f"{p:g} %" for p in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlim(0, nines_max * 1.02)
    axis.set_xlabel(f"percentile of {of} (log scale towards 100 %)")
    latency_axis(axis, min(lows), max(highs))
    titled(axis, title)
    below(figure, handlelength=3)  # curves may be anywhere
    return png(figure)


def rate_curves(
    rates: Sequence[float], percentiles: Mapping[str, Sequence[float]], title: str
) -> bytes:
    """Latency over messages a second, a line for each percentile; both logarithmic."""
    figure, axis = drawn()
    for number, (name, values) in enumerate(percentiles.items()):
        axis.plot(
            rates, values, label=name, marker="o", **pen(number),
        )  # fmt: skip
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("messages a second (log scale)")
    every = [value for values in percentiles.values() for value in values]
    latency_axis(axis, min(every), max(every))
    titled(axis, title)
    axis.legend(loc="best")
    return png(figure)


def scaling_curves(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], what: str, title: str,
    *, in_bytes: bool = False,
) -> bytes:  # fmt: skip
    """Messages a second over a number of something, a line for each name; both logarithmic."""
    figure, axis = drawn(10.0, 4.2)
    for place, (name, (numbers, rates)) in enumerate(lines.items()):
        axis.plot(numbers, rates, label=name, marker="o", **pen(place))
    axis.set_xscale("log", base=2 if in_bytes else 10)
    numbers = sorted({each for numbers, _ in lines.values() for each in numbers})
    shown = [format_size(int(each)) if in_bytes else f"{each:,}" for each in numbers]
    axis.set_xticks(numbers, shown)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(what)
    rate_axis(axis, [rate for _, rates in lines.values() for rate in rates])
    titled(axis, title)
    axis.legend(loc="best", title="client", handlelength=3)
    return png(figure)


def bars(
    values: Mapping[str, float], marks: Mapping[str, str], kinds: Sequence[str], of: str,
    title: str, written: Callable[[float], str],
) -> bytes:  # fmt: skip
    """A bar for each name, logarithmic, its value beside it; bars of one mark look alike.

    Each of the kinds of marks has its colour, whether it is there or not.
    """
    figure, axis = drawn(10.0, 1.4 + 0.3 * len(values))
    names = list(values)
    lowest = min(values.values()) / 2
    for place, kind in enumerate(kinds):
        mine = [at for at, name in enumerate(names) if marks[name] == kind]
        if not mine:
            continue
        axis.barh(
            mine, [values[names[at]] - lowest for at in mine], left=lowest, label=kind,
            color=COLOURS[place % len(COLOURS)], hatch=HATCHES[place % len(HATCHES)],
            edgecolor="white", linewidth=0,
        )  # fmt: skip
    for at, name in enumerate(names):
        axis.annotate(
            written(values[name]), (values[name], at), (4, 0), textcoords="offset points",
            va="center", fontsize=9,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlim(lowest, max(values.values()) * 4)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(f"{of} (log scale)")
    titled(axis, title)
    below(figure)
    return png(figure)


def distribution(nanoseconds: Sequence[float], title: str, what: str) -> bytes:
    """How many took how long, in bins that grow with the time."""
    figure, axis = drawn(10.0, 4.2)
    low, high = min(nanoseconds) * 0.9, max(nanoseconds) * 1.1
    count = min(BINS, max(8, int(2 * len(nanoseconds) ** 0.5)))
    edges = np.geomspace(low, high, count + 1).tolist()
    axis.hist(nanoseconds, edges, color=COLOURS[0], edgecolor="white")
    for place, percent in enumerate((50, 99), 1):
        at = float(np.percentile(nanoseconds, percent, method="inverted_cdf"))
        axis.axvline(at, label=f"p{percent}: {readable(at)}", **pen(place))
    axis.set_xscale("log")
    ticks = [s * 10.0**e for e in range(19) for s in (1, 2, 5) if low <= s * 10**e <= high]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FuncFormatter(readable))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel(f"time, {readable(low)} to {readable(high)} (log scale)")
    axis.set_ylabel(what)
    titled(axis, title)
    below(figure, handlelength=3)
    return png(figure)


def below(figure: Figure, **options: Any) -> None:
    """The legend, under the picture, in as many columns as have room."""
    labels = [label for axis in figure.axes for label in axis.get_legend_handles_labels()[1]]
    columns = 3 if max(map(len, labels), default=0) <= LABEL else 2
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, **options)


def pen(place: int) -> dict[str, Any]:
    """How the line in this place is drawn."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "linewidth": 1.8,
    }


def rate_axis(axis: Axes, rates: Sequence[float]) -> None:
    axis.set_yscale("log")
    low, high = min(rates) / 1.5, max(rates) * 1.5
    steps = (1, 2, 5) if high / low < 500 else (1,)
    ticks = [s * 10.0**e for e in range(12) for s in steps if low <= s * 10**e <= high]
    axis.set_ylim(low, high)
    axis.yaxis.set_major_locator(FixedLocator(ticks))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: counted(value)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_ylabel("messages a second (log scale)")


def counted(number: float) -> str:
    """850, 1.2 thousand, 30 million."""
    for limit, unit, text in ((1e3, 1, ""), (1e6, 1e3, " thousand"), (1e9, 1e6, " million")):
        if number < limit:
            return f"{number / unit:.3g}{text}"
    return f"{number / 1e9:.3g} billion"


def heat_map(
    times: Sequence[datetime], values: np.ndarray, counts: np.ndarray,
    lines: Mapping[str, Sequence[float | None]], window_seconds: float, title: str,
) -> bytes:  # fmt: skip
    """How many messages had which latency when.

    `values[i]` belongs to row i of counts, a column is a window.
    """
    figure, axis = drawn(10.0, 5.6)
    present = counts.sum(axis=1) > 0
    low, high = float(values[present].min()), float(values[present].max())
    edges = np.geomspace(max(low * 0.9, 0.5), max(high * 1.1, low * 2), BINS + 1)
    binned = np.zeros((BINS, counts.shape[1]))
    np.add.at(binned, np.clip(np.searchsorted(edges, values) - 1, 0, BINS - 1), counts)
    seconds = np.array([time.timestamp() for time in times])
    begins = np.array([*seconds, seconds[-1] + window_seconds]) / 86400
    shown = np.ma.masked_equal(binned, 0)
    norm = LogNorm(1, max(float(binned.max()), 10))
    mesh = axis.pcolormesh(begins, edges, shown, cmap="cividis", norm=norm, rasterized=True)
    figure.colorbar(mesh, ax=axis, label=f"messages per {window_seconds:g} s (log scale)")
    middle = (seconds + window_seconds / 2) / 86400
    for number, (name, line) in enumerate(lines.items()):
        heights = np.array([np.nan if value is None else value for value in line], float)
        axis.plot(middle, heights, color="white", linewidth=3.5)
        axis.plot(
            middle, heights, label=name, linewidth=1.8,
            color=("#D55E00", "#CC0066")[number % 2], linestyle=DASHES[number],
        )  # fmt: skip
    time_axis(axis, seconds[-1] + window_seconds - seconds[0])
    latency_axis(axis, edges[0], edges[-1])
    axis.grid(visible=False)
    titled(axis, title)
    axis.legend(loc="upper left", frameon=True, framealpha=0.9)
    return png(figure)


def burn_lines(
    times: Sequence[datetime], burns: Mapping[str, Sequence[float | None]], title: str
) -> bytes:
    """How fast the budget is used, queue by queue."""
    figure, axis = drawn()
    for number, (name, line) in enumerate(burns.items()):
        heights = np.array([np.nan if value is None else value for value in line], float)
        days = np.array([time.timestamp() for time in times]) / 86400
        axis.plot(
            days, heights, label=plain(name), **pen(number),
        )  # fmt: skip
    axis.axhline(1, color="#000000", linewidth=1.2, label="budget just used up")
    axis.set_yscale("symlog", linthresh=1)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_ylim(bottom=0)
    axis.set_ylabel("burn rate (1 = the objective's share; log scale above 1)")
    time_axis(axis, (times[-1] - times[0]).total_seconds() if times else 0)
    titled(axis, title)
    # beside the lines, which may be anywhere
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    return png(figure)


def titled(axis: Axes, title: str) -> None:
    axis.set_title(plain(title), loc="left", fontweight="bold")


def plain(text: str) -> str:
    """A name as it is: what is between dollars would be mathematics, and a label that begins with
    _ is in no legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def time_axis(axis: Axes, seconds: float) -> None:
    """Times of day where that is enough; else with days and months."""
    locator = AutoDateLocator()
    axis.xaxis.set_major_locator(locator)
    if seconds < DAY_SECONDS:
        axis.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
        axis.set_xlabel("time of day (UTC, h:min:s)")
    else:
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axis.set_xlabel("date and time of day (UTC)")
