"""Interval histograms in files: .hlog and Parquet."""
