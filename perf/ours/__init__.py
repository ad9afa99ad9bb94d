"""Our own contestants: what C, Numba and Python programs make of a ring."""
