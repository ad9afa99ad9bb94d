"""Replication: the frames of a journal go to replicas, which keep rings that nobody sees yet.

`feed.Feed` is the live's view of one replica and `copying.Copying` the replica's own: machines
without effects.  `in_sync.InSync` is the set of those that count.  `live.Replication` and
`replica.Replica` carry out what they say.  Who may be live is decided elsewhere.
"""
