"""The console of an instance: pages and a JSON API over what is in shared memory.

A process of its own (`supervised.py` begins it, `server.py` is it), so that it works while the
broker hangs or is dead.  It reads what the other verbs of the command read, and never makes a
passive broker active.  Whoever asks passes `guard.py` first; what changes something is in
`actions.py`.  The pages are plain files in `pages/`.
"""
