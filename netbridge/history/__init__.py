"""What clients asked and were answered, as plain data, and what must be true of it.

It knows nothing of brokers, so a simulation and real processes are judged by the same rules.
"""
