"""What a live broker has of the network: where it listens, and the bridges of its configuration.

`owner.Owner` is told by the instance when it is live and when it is live no more; ZeroMQ is
imported when there is something to listen to or to ship, and not before.  `table` is what others
see of the links.
"""
