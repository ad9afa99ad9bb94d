"""Frames on a socket: heads in MessagePack, bodies as they are; nothing else is understood.

A frame is one ZeroMQ message of one part (the head), or of two (head and body).  The head is a
MessagePack array: the kind, the number of the frame on its connection, and the fields of the kind.
The room is pure: bytes in, frames out, and `Malformed` for all that is not one.
"""
