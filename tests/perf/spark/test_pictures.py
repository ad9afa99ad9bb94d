"""Pictures have the names of queues as they are."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

NAMES = ("_x, publish-take", "eur$.usd$", "a$b_c_d$", r"\$")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_special_to_matplotlib_is_drawn(name: str) -> None:
    from shmbroker.perf.scenarios import pictures

    curve = pictures.Curve(np.array([1, 2]), np.array([3, 4]))
    assert pictures.percentile_curves({name: curve}, name)
    times = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2)]
    assert pictures.burn_lines(times, {name: [0.5, 2.0]}, name)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_in_title_and_legend(name: str) -> None:
    from matplotlib.cbook import is_math_text
    from matplotlib.text import Text

    from shmbroker.perf.scenarios import pictures

    figure, axis = pictures.drawn()
    axis.plot([1, 2], label=pictures.plain(name))
    pictures.titled(axis, name)
    pictures.below(figure)
    shown = [each.get_text() for each in figure.findobj(Text) if isinstance(each, Text)]
    found = [each for each in shown if each.replace(r"\$", "$").lstrip() == name]
    assert len(found) == 2
    assert not any(is_math_text(each) for each in found)
