"""Brokers that are independent and joined by links; some of them are pairs with a shared store.

The machines of `netbridge/link/` and `netbridge/plan/` run as in a broker, and the codec of frames.
What they work on is modelled: `store.py` stands for queues and journal, `source.py` and `sink.py`
for a queue that is shipped and for where a stream goes, `dialler.py` for the end that connects,
`node.py` for who is live.  The worlds `agents` and `networks` are made of it.
"""
