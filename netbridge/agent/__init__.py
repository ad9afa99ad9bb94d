"""Message transfer agents: an exchange here and the one of the same name at another broker.

`option.py` has [[mta]].
"""
