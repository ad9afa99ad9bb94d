"""What a queue can be declared with, as one table; and settings by pattern of the name."""
