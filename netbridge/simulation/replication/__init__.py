"""Members of a replicated node, their voters and their clients, and what strikes them.

`log.py` is a simple model of the path of data; who serves is decided by the real machines.
"""
