"""What a cluster costs beyond what one machine can run: messages and bytes of its topology.

The machines of `netbridge/cluster/` and of links run as in a broker, and what they say is encoded
and read as there; only the sockets are a queue in memory.  So the figures are counts of frames, and
no times.
"""
