"""A replicated pair, as in tests/netbridge/replicated."""

from __future__ import annotations

from tests.netbridge.replicated.conftest import node

__all__ = ["node"]
