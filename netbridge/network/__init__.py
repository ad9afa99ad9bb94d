"""Networks of brokers: what a broker wants of the messages of another one, on demand of consumers.

`demand.py` is the end that wants, `supply.py` the end that has, `said.py` what the one tells the
other, `option.py` has [links.NAME].  All of it is pure; `netbridge/networked/` carries it out.
"""
