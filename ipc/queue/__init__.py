"""A queue of a vhost: publishing to it, taking from it, and what it does beyond its ring."""
