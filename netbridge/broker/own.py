"""Queues of a broker that must be in one place."""

from __future__ import annotations

from typing import Final

OF_ONE_PLACE: Final = ("last_value", "groups", "single_active", "non_destructive")
"""Settings of queues whose messages belong together."""
