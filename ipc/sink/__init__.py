"""The sink: records from elsewhere go into rings, each exactly once.

It is the counterpart of what reads records behind a gate: a link, a replica, an import and a
remote program's publishes end here.  A stream of records has an identity, its origin, and numbers
that rise.  Each ring keeps how far each origin is (core/origin.py).  After any death, of the one
who pours or of the machine, pouring the same records again appends those that are not there yet.

The sink decides nothing about connections, and waits for nothing but room.
"""
