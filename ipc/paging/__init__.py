"""Queues that page: the thread between memory and page files, and the files."""
