"""A member of a replicated node as a process: carries out what `netbridge/member` decides.

`talks.Talks` has the links to the other members, `acting.Acting` does what the machine says, over
a journal (`store.Store`), the rings of a live (`served.Served`) or those of a replica.
`instance.ReplicatedInstance` is the process.
"""
