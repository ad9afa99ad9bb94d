"""One authenticated connection between two brokers, or a program and a broker.

`machine.py` is what an end does: events and a time in, actions out.  It is made anew for each
connection; what outlives one (how far a target has confirmed) is in the source's ring.  To connect
again is its owner's part.
"""
