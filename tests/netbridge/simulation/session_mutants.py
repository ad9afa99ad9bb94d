"""The machines of a session with one guard removed: the simulation must object to each."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.remote import fate
from shmbroker.netbridge.remote.answers import Answers
from shmbroker.netbridge.remote.calls import Calls
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.numbers import Numbers
from shmbroker.netbridge.remote.prefetched import Prefetched
from shmbroker.netbridge.remote.producing import Producing
from shmbroker.netbridge.remote.session import Session
from tests.netbridge.simulation.mutants import Mutant

MUTANTS: Final = (
    # --- re-attaching
    Mutant("a-command-is-not-said-again", Client, "_reattached", ">= frame.seen", "> frame.seen"),
    Mutant("all-commands-are-said-again", Client, "_reattached", "number >= frame.seen", "True"),
    Mutant("nothing-is-told-again", Session, "resume", "in self.kept", "in ()"),
    # --- failing over
    Mutant("numbered-anew", Producing, "number", "if not call.value", "if True"),
    Mutant("not-said-that-it-is-repeated", Calls, "put", "call.repeated = True", "pass"),
    Mutant(
        "given-up-while-it-waits-again",
        fate,
        "given_up",
        "call.was_sent or call.repeated",
        "call.was_sent",
    ),
    Mutant("the-generation-stays", Client, "next_generation", "self.generation += 1", "pass"),
    Mutant("not-given-back-at-the-end", Session, "_end", "for n in self.in_hand", "for n in ()"),
    Mutant(
        "deliveries-of-one-session-settled-in-the-next",
        fate,
        "fate",
        "if remade and verb in GONE_WITH_ITS_SESSION",
        "if False",
    ),
    # --- numbers
    Mutant(
        "sent-again-while-it-is-on-its-way",
        Client,
        "retry",
        "if on_its_way:",
        "if False:",
    ),
    Mutant(
        "seen-because-a-later-one-was",
        Numbers,
        "verdict",
        "Verdict.NEW if number in self.open else Verdict.SEEN",
        "Verdict.SEEN",
    ),
    Mutant("seen-numbers-stay-open", Numbers, "take", "self.open.discard(number)", "pass"),
    Mutant(
        "unknown-numbers-called-decided",
        Producing,
        "floor",
        "min([self.next, *lowest])",
        "self.next",
    ),
    # --- deliveries
    Mutant("settled-twice", Client, "_may_settle", " or each in self.settling", ""),
    Mutant(
        "settled-in-another-session",
        Client,
        "_may_settle",
        "not self.travelling.is_ours(call)",
        "False",
    ),
    Mutant("taken-for-nobody", Answers, "_made", "if call.is_abandoned:", "if False:"),
    Mutant("credit-never-given-back", Prefetched, "settle", "self.settled += 1", "pass"),
)

SHOWN_BY: Final = {
    "a-command-is-not-said-again": 29,
    "all-commands-are-said-again": 19,
    "nothing-is-told-again": 19,
    "numbered-anew": 10,
    "not-said-that-it-is-repeated": 2,
    "given-up-while-it-waits-again": 296,
    "the-generation-stays": 0,
    "not-given-back-at-the-end": 3,
    "deliveries-of-one-session-settled-in-the-next": 15,
    "sent-again-while-it-is-on-its-way": 43,
    "seen-because-a-later-one-was": 2,
    "seen-numbers-stay-open": 91,
    "unknown-numbers-called-decided": 2,
    "settled-twice": 3,
    "settled-in-another-session": 4,
    "taken-for-nobody": 3,
    "credit-never-given-back": 0,
}
"""The seed that objects to each; if it does not any more, one behind it has to."""
