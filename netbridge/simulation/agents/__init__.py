"""Brokers whose exchanges message transfer agents join, in all modes, in chains and in rings.

The machines of `netbridge/agent/` run as in a broker, over the links of `simulation/peers/`.
`routing.py` is a model of `core/route.py`, `journey.py` of `ipc/sink/journey.c`, `broker.py` of
`netbridge/transferred/`.  `copies.py` says without any of these where a message is to be, and how
often.
"""
