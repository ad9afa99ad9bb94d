"""Queue replicas in a broker: what `netbridge/queue_replica` decides, carried out.

`feeding.py` is the side of originals, `confirming.py` their confirms that wait for replicas;
`following.py` is the side of replicas.  There is one link for all queues that follow the same
broker.  `replicas.py` has all of those of a broker, and takes the orders; `saving.py` keeps what
was in a queue that begins to follow.
"""
