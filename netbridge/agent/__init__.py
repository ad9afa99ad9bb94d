"""Message transfer agents: an exchange here and the one of the same name at another broker.

`option.py` has [[mta]], `party.py` what each end of a link does, `subscription.py` what one broker
wants of the other, `said.py` what the ends tell each other, `codec.py` brings that to bytes and
back.  All of it is pure; `netbridge/transferred/` carries it out.
"""
