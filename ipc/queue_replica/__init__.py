"""Replicas of single queues on one host: reading an original without a gate (`original.py`), and
putting its messages where it has them (`copy.py`), all of a moment at once (`moment.py`), in a
queue that others only look at (core/replica.py).
"""
