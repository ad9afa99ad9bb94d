"""Frames on a socket: heads in MessagePack, bodies as they are; nothing else is understood.

A frame is one ZeroMQ message of one part: the length of the head, the head, and the body if any.
The head is a MessagePack array: the kind, the number of the frame on its connection, and the fields
of the kind.  One part, because libzmq ends the process if a peer goes away between two parts that
it is just giving (an assertion in fq.cpp, 4.3.5).
The room is pure: bytes in, frames out, and `Malformed` for all that is not one.
"""
