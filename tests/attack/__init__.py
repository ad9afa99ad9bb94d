"""An attack from outside: programs that use only what the documents promise, and are killed for it.

    python -m tests.attack --minutes 60         worlds in turn, each with a seed of its own
    python -m tests.attack --world disk --seed 7

Every message is accounted for by its content.
"""
