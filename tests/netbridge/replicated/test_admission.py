"""A replica may take over only if confirms wait for it."""

from __future__ import annotations

from shmbroker.netbridge.replicated.admission import Admission


def test_the_last_frame_is_shown_when_confirms_can_wait() -> None:
    admission = Admission()
    admission.ship("b", 7)
    assert admission.shown("b", 100, counted=()) == 99, "in sync, and nothing waits for it"
    admission.admit("b", lambda: None)
    assert admission.shown("b", 100, counted=()) == 100


def test_one_that_counts_is_shown_as_it_is() -> None:
    assert Admission().shown("b", 100, counted={"b"}) == 100


def test_a_new_stream_is_admitted_anew() -> None:
    admission = Admission()
    admission.ship("b", 7)
    admission.admit("b", lambda: None)
    admission.ship("b", 8)
    assert admission.stream("b") == 8
    assert admission.shown("b", 100, counted=()) == 99


def test_the_newer_end_counts_before_the_older_one_is_let_go() -> None:
    admission, said = Admission(), list[str]()
    admission.release("b", lambda: said.append("older is let go"))
    admission.let_go({"b"})
    assert said == []
    admission.admit("b", lambda: said.append("newer counts"))
    admission.count({"a", "b"})
    admission.count({"b"})
    assert said == ["newer counts", "older is let go"]


def test_confirms_go_on_without_one_that_counts_no_more() -> None:
    admission, said = Admission(), list[str]()
    admission.release("b", lambda: said.append("b"))
    admission.release("c", lambda: said.append("c"))
    admission.let_go({"c"})
    assert said == ["b"]
    admission.let_go(())
    assert said == ["b", "c"]
