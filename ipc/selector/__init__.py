"""Selectors: their text, the program that it compiles to, and the machine that runs it."""
