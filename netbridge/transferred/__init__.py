"""Message transfer agents at work: what `netbridge/agent/` decides, carried out.

`agents.py` has the ends of their links, `upstream.py` the queues of what waits for them,
`subscriber.py` those of what agents of others want here,
`former.py` takes the bindings of agents away that are no more.
"""
