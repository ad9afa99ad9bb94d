"""A vhost: its segments, its participants, and the log of errors."""
