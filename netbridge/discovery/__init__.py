"""Brokers that are found: what each announces of itself, and whom a reader has heard of.

All of it is decided here, without a clock and without a socket: what is announced and when
(`announcing.py`), which announcements count and how long (`entries.py`), their bytes (`codec.py`),
and the options.  `netbridge/discovered/` carries it out.
"""
