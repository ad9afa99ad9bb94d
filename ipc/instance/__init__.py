"""A broker as a process: a folder with its configuration, its log and its journal.

config.py     what can be configured
store.py      the folder that live and backup share
live_lock.py  who of them is live: file_lock.py, or sql_lock.py
machine.py    what an instance does when: states, events and actions, nothing else
instance.py   the process: does what the machine says
"""
