"""Selectors: their text, and the program that it compiles to, which core/selector.py runs."""
