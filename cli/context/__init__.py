"""Contexts: by name, brokers that commands reach, and where their passwords are.

`contexts.py` is the file of this user, `command.py` the verbs, `instance.py` what `create` adds.
"""
