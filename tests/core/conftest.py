"""What the tests of the catalog share."""

from __future__ import annotations

import pytest

from tests.core.vhost import Vhost


@pytest.fixture
def vhost() -> Vhost:
    return Vhost()
