"""Scheduled messages, and the mover: the thread that moves them when they are due."""
