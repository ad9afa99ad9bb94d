"""The durable benchmark: what a confirm costs that is worth its name. See __main__.py."""
