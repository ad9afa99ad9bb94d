"""Sizes as people write them."""

import pytest

from shmbroker.perf.machine.size import format_size, parse_size


@pytest.mark.parametrize(
    ("written", "size"),
    [("64", 64), ("64B", 64), ("1KiB", 1024), (" 1 mib ", 1 << 20), ("2GiB", 2 << 30)],
)
def test_a_written_size_is_understood(written: str, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "KiB", "1KB", "1.5KiB", "-64", "0", "7", "65"])
def test_a_wrong_size_is_refused_by_name(written: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(written)


@pytest.mark.parametrize("size", [8, 64, 1000, 1024, 1536, 1 << 20])
def test_what_is_shown_can_be_typed_again(size: int) -> None:
    assert parse_size(format_size(size)) == size
