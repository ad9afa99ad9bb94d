"""The members of a cluster at work: what `netbridge/cluster/` decides, carried out.

`members.py` has who is linked, `voting.py` the vote of a live, `voters.py` what a member of a
replicated node has of the other lives, `owner.py` a broker that is not replicated.
"""
