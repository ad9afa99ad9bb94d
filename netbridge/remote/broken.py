"""Raised inside of a machine where the other end breaks the rules; it ends the link."""

from __future__ import annotations


class SessionBroken(Exception):
    pass
