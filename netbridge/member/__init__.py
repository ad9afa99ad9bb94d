"""The life of a member of a replicated node: whose copy counts, who serves, who follows whom.

It is pure, and it moves no data: it says by actions what is to be shipped and followed, and hears
by events how far that is.  `action.py` and the events of `machine.py` are the whole interface.
"""
