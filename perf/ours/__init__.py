"""Our own entries among the peers: what C, Numba and Python programs make of a ring."""
