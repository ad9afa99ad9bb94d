"""The table of queue settings, and settings by pattern of the name."""
