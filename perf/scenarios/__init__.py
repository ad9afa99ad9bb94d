"""Scenarios: what is measured from options to report."""
