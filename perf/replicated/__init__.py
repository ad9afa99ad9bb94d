"""Brokers that keep a queue in several copies: ours, and those of others, on this host."""
