"""The remote benchmark: programs and brokers on both sides of TCP. See __main__.py."""
