"""What the configuration of an instance says of other hosts.

The words stand in the rooms that need them; here they are read together, checked against each
other, explained, and read again by a broker that runs.
"""
