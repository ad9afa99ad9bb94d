"""One to three, competing: each message goes to exactly one of three receivers.

                              +------------+
                      +------>| receiver 0 |  m0, m3, ...
                      |       +------------+
    +--------+        |       +------------+
    | sender |--------+------>| receiver 1 |  m1, m2, ...
    +--------+        |       +------------+
                      |       +------------+
                      +------>| receiver 2 |  m4, ...
                              +------------+

No receiver knows its share beforehand: each goes on until it gets a stop message.
"""

from shmbroker.perf.harness.topology import Topology

ONE_TO_THREE_COMPETING = Topology(
    "one-to-three-competing", senders=1, receivers=3, delivery="each-once"
)
