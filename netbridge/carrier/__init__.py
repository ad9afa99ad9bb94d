"""What carries links out: sockets, one thread, and the rings at both ends.

`thread.NetworkThread` is the loop; `link.Link` is the end that connects, `listener.Listener` the
end that is connected to.  What waits for a lock or a repair is done by `worker.Worker`, in a thread
of its own.  What is decided is decided by the machines of `netbridge/link` and
`netbridge/plan`.
"""
