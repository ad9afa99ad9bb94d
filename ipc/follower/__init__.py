"""Followers: who reads what comes into queues behind gates of its own, and takes nothing.

`follower.py` has the calls, `gates.py` lists the gates of a queue.  It may not take messages.
"""
