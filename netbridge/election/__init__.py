"""Who may be live: epochs, the voters that grant them, candidates that ask, and leases.

All of it is pure: what came and a time go in, what is to be done comes out.  It knows nothing of
journals and of replicas; `netbridge/member/` does.
"""
