"""A program on another host, its session with a broker, and what goes wrong between them."""
