"""The peers: one module each, which names what it offers in ``PEERS``.

A module dropped in here is found by the registry; nothing needs to be registered.
"""
