"""Message transfer agents: an exchange here and the one of the same name at another broker.

`option.py` has [[mta]], `subscription.py` what one broker wants of the other, `said.py` what the
ends of a link tell each other, `codec.py` brings that to bytes and back.  All of it is pure;
`netbridge/transferred/` carries it out.
"""
