"""Ping-pong: one message on its way at any time; the round trip is what is measured.

    +-----------+  message   +-----------+
    |           |----------->|           |
    | initiator |            | responder |
    |           |<-----------|           |
    +-----------+    echo    +-----------+

The responder sends back what it received. The initiator checks every reply.
"""

from shmbroker.perf.harness.topology import Topology

PING_PONG = Topology("ping-pong", senders=1, receivers=1, delivery="echo")
