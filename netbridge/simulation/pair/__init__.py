"""Two brokers of which one accepts applications, and applications in the right and wrong order."""
