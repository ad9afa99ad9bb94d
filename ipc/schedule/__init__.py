"""Messages that are to be delivered later, and the thread that moves them when they are due."""
