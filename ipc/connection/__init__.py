"""A connection of a program to a vhost."""
