"""Brokers whose queues follow queues of each other, in a chain or a ring.

The machines of `netbridge/queue_replica/` run as in a broker.  What carries them out there reads
and writes rings in shared memory; here it is modelled: `reading.py` stands for
core/original.py, `copy.py` for ipc/queue_replica/ and core/replica.py, `feeder.py` and
`follower.py` for netbridge/queue_replicated/.  `watch.py` has what must be true.
"""
