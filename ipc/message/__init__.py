"""One message: outgoing, taken or copied, and its properties.

This room knows nothing of queues except the handle that a message came from.
"""
