"""Peers that are servers: started, driven and ended."""
