"""Nodes of a cluster that share queues, from two to nine, some of them with a backup.

The machines of `netbridge/cluster/` run as in a broker.  What carries them out there works over
shared memory and links; here it is modelled: `store.py` stands for queues and journal, `way.py` for
a queue towards a node and its link, `broker.py` and `carrying.py` for `netbridge/clustered/`,
`leaving.py` for its departure.  `programs.py` publishes and consumes, `watch.py` has what must be
true.
"""
