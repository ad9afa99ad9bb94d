"""One message: what is published, what is taken, what is copied, and its properties.

It knows nothing of the queue that the message is in, but for the handle that it came from.
"""
