"""A cluster of two, as the file of one of them has it."""

from __future__ import annotations

TOWN = """
[connectors]
east.uri = "tcp://one:61619"
north.uri = "tcp://two:61619"
[acceptors.town]
uri = "tcp://*:61619"
roles = ["cluster"]
[cluster.town]
connector = "east"
user = "town"
password = "correct horse battery"
static-connectors = ["north"]
"""
