"""One to one: a stream from one process to another, as fast as it goes.

+--------+        +----------+
| sender |------->| receiver |
+--------+        +----------+
"""

from shmbroker.perf.harness.topology import Topology

ONE_TO_ONE = Topology("one-to-one", senders=1, receivers=1, delivery="each-once")
