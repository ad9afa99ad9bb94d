"""Who of those that share a store is live: by a file, or by a lease in PostgreSQL."""
