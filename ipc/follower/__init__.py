"""Followers: who reads what comes into queues behind gates of its own, and takes nothing.

`follower.py` has the calls, `gates.py` lists the gates of a queue, `replica.py` has a gate that
confirms wait for.  It may not take messages.
"""
