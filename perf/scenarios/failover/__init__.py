"""Killing the live, again and again: what a program sees of it. See __main__.py."""
