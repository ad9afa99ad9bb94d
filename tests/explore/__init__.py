"""The explorer: runs the real kernels under every interleaving, with a kill at every step.

    translation   a kernel's source becomes a generator that stops at each operation
    actor         a process: its local states, discovered once and shared by all histories
    memory        named words; which operations on them are steps
    machine       a global state and one step from it: an operation, a death, a store made visible
    search        breadth first over all states; graph: what can be asked of all of them afterwards
    scenario      who shares which memory, what may befall them, the rules
    report        a failure as a story; schedule: to be replayed

For another structure write its words (like ring.py), programs in the style of kernels
(processes.py), rules (invariants.py) and scenarios; everything above stays as it is.
By hand: python -m tests.explore --help
"""
