"""Tables of a page in docs/ that are made from the code: they stand between two comments."""

from __future__ import annotations


def put(page: str, begin: str, tables: str, end: str) -> str:
    """The page with these tables between its comments `begin` and `end`."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{tables}\n{end}{after}"
