"""One to three, broadcast: every receiver gets every message; none may be dropped.

                              +------------+
                      +------>| receiver 0 |  m0, m1, m2, ...
                      |       +------------+
    +--------+        |       +------------+
    | sender |--------+------>| receiver 1 |  m0, m1, m2, ...
    +--------+        |       +------------+
                      |       +------------+
                      +------>| receiver 2 |  m0, m1, m2, ...
                              +------------+

The rate counts a message once, however many receivers got it.
"""

from shmbroker.perf.harness.topology import Topology

ONE_TO_THREE_BROADCAST = Topology(
    "one-to-three-broadcast", senders=1, receivers=3, delivery="to-all"
)
