"""Histograms of the times that messages take, and the statistics of a queue."""
