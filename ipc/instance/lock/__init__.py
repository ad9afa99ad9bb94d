"""Which instance of a store is live: by a lock on a file, or by a lease in PostgreSQL."""
