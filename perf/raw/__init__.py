"""The raw limits of the machine, in C: what no messenger can be faster than."""
