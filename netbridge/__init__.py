"""What goes between hosts: links, plans, security, remote clients.

Each folder has a machine (pure: events and a time in, actions out), what carries its actions out,
and the words of its configuration. A file that imports zmq decides nothing; one that decides
imports neither zmq nor a clock nor random.
"""
