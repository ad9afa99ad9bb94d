"""A ring and its arena, without names: ports, cursors, and the kernels that may wait or allocate.

Named queues are in shmbroker.ipc.queue.
"""
