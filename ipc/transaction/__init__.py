"""Transactions: publishes and acknowledgements that happen together."""
