"""The configuration of an instance, its options and secrets."""
