"""The members of a node as its voters know them: who asks, who serves, whom the list names.

There are no journals and no clients.  So a run takes a fraction of the time that one takes in the
whole world of `replication/`, and has several times as many votes.
"""
