"""The explorer: runs the real kernels under every interleaving, with a kill at every step."""
