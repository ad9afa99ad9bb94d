"""Queues of a broker that stay with it: those that are its own, and those that must be in one
place."""

from __future__ import annotations

from typing import Final

OWN: Final = "$"
"""Names of the broker's own queues and exchanges begin so."""
OF_ONE_PLACE: Final = ("last_value", "groups", "single_active", "non_destructive")
"""Settings of queues whose messages belong together."""
