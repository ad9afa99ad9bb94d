"""Discovery at work: what `netbridge/discovery/` decides, carried out.

`announcer.py` says what a broadcast announces, `discoverer.py` hears what others do, each in a
thread of its own; `udp.py` and `registry.py` are the two ways, `broadcasts.py` all that a broker
announces.
"""
