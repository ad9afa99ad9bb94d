"""Exchanges and their bindings, and subscriptions by name."""
