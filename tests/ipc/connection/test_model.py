"""The whole Python API against a plain model of it: whatever is done, in whatever order.

Three participants of one process do things at random; after each the answer, and now and then all
that can be looked at, is what the model says.  The same things are done in each run; more, and
others each time, with SHMBROKER_MODEL_EXAMPLES=10000.  What fails is printed as a program.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.support.vhost_rules.exchanges import ExchangeRules
from tests.support.vhost_rules.looks import LookRules
from tests.support.vhost_rules.messages import MessageRules
from tests.support.vhost_rules.queues import QueueRules

EXAMPLES = int(os.environ.get("SHMBROKER_MODEL_EXAMPLES", "0"))


class Machine(QueueRules, MessageRules, ExchangeRules, LookRules):
    """All rules together."""


class TestModel(Machine.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(
        max_examples=EXAMPLES or 300,
        stateful_step_count=60,
        derandomize=not EXAMPLES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
