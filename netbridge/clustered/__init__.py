"""The members of a cluster at work: what `netbridge/cluster/` decides, carried out.

`members.py` has the links, `voters.py` what a member of a replicated node has of the other lives,
`owner.py` a broker that is not replicated.
"""
