"""A vhost: its segments, its participants, and what is repaired when one dies."""
