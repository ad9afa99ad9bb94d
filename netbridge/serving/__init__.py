"""What programs on other hosts ask for, carried out in a vhost.

`service.Service` is the sessions of a vhost; a Listener hands it the links of programs.  Who is
served what, and when a session is over, the machines of `netbridge/remote` decide.  Nothing here
waits in the network thread: room, messages, confirms and replies come as bells of the sleeper, and
what takes a lock of the catalog is done by a thread of its own (`netbridge/carrier/worker.py`).
"""
