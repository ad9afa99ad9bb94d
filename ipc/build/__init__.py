"""How the kernels become libshmbroker.so, shmbroker.h, the cffi modules and Numba functions.

Run by setup.py, and by jit.py in users' processes.  No other room imports it.
"""
