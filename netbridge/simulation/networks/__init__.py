"""Brokers that fetch messages from each other because somebody consumes: hubs, chains and rings.

The machines of `netbridge/network/` run as in a broker, over the links of `simulation/peers/`.
`broker.py` is a model of `netbridge/networked/`: it looks who consumes, and moves what others
fetch.  That a link itself ships each message once is seen in the world `links`, too.
"""
