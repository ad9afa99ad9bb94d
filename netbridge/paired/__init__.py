"""A broker of a pair as a process: what `netbridge/pair` decides, carried out.

The broker itself is an instance with a store of its own, as without a pair.  Its network has one
more link, to the other one, and asks the machine whether an application is accepted.
"""
