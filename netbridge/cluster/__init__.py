"""Clusters: who is in one, as each member knows it, and how many of its lives vote.

`machine.py` decides, `said.py` is what members say to each other, `option.py` has [cluster.NAME].
`adverts.py` has what the lives tell each other of their queues.
`handler.py` has to which nodes groups go, with `arbiter.py` and `proposer.py`.
All of it is pure; `netbridge/clustered/` carries it out.
"""
