"""A world with one seed, in which the machines of netbridge run: time, network, disks, crashes.

Nothing here knows a real clock or socket, so a run is repeated by its seed.  `run.py` says what is
simulated, `history.py` what must be true, `fault.py` what goes wrong.
"""
