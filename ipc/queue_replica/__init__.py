"""Replicas of single queues on one host: reading an original without a gate (`original.py`), and
putting its messages where it has them (`copy.py`), in a queue that others only look at
(core/replica.py).
"""
