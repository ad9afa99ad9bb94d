"""Crash tests: real processes killed at random instants, every message accounted for by content."""
