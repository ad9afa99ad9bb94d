"""Programs on other hosts: the session of a program with a broker, at both ends.

`client.py` and `session.py` are the two machines, both pure: events and a time in, actions out.
A session outlives its links: it is attached to one after the other, and each end says again what
the other one has not seen.  If the broker has no such session any more, the program's end makes it
again (`fate.py` says what becomes of each call).  Links and plans are their owners' part.
"""
