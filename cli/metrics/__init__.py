"""Metrics for Prometheus, of an instance or a vhost of this host.

`exposition.text` gives the page that a scrape reads: whoever serves `/metrics` calls that.  Nothing
here changes what it looks at, and a broker that hangs, is stopped or is dead is read as well.

table.py       each metric: its name, its type, what it says, when it is alarming
rings.py       the figures of all queues of a vhost, read column by column
broker.py      the figures of a broker: from its run/, its store and its table of links

Needs the extra `metrics`: prometheus-client and numpy.
"""
