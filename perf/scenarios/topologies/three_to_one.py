"""Three to one: three processes send into one queue, one process empties it.

+----------+
| sender 0 |------+
+----------+      |
+----------+      v      +----------+
| sender 1 |------------>| receiver |
+----------+      ^      +----------+
+----------+      |
| sender 2 |------+
+----------+
"""

from shmbroker.perf.harness.topology import Topology

THREE_TO_ONE = Topology("three-to-one", senders=3, receivers=1, delivery="each-once")
