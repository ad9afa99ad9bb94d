"""A queue that follows a queue of another broker: what its states are, and what the two brokers say
to each other.

It imports neither sockets nor a clock; `netbridge/queue_replicated/` carries out what it says.
"""
