"""A replica may take over only if confirms wait for it."""

from __future__ import annotations

from shmbroker.netbridge.replicated.admission import Admission


def test_the_newer_end_counts_before_the_older_one_is_let_go() -> None:
    admission, said = Admission(), list[str]()

    def counts() -> bool:
        said.append("newer counts")
        return True

    admission.release("b", lambda: said.append("older is let go"))
    admission.let_go({"b"})
    assert said == []
    admission.admit("b", counts)
    admission.count({"a", "b"})
    admission.count({"b"})
    assert said == ["newer counts", "older is let go"]


def test_the_older_end_stays_if_the_newer_one_cannot_count() -> None:
    admission, said = Admission(), list[str]()
    admission.release("b", lambda: said.append("older is let go"))
    admission.admit("b", lambda: False)
    admission.count({"b"})
    assert said == []
    admission.let_go({"b"})
    assert said == []
    admission.admit("b", lambda: True)
    admission.count({"b"})
    assert said == ["older is let go"]


def test_a_new_stream_is_admitted_anew() -> None:
    admission, said = Admission(), list[str]()

    def counts() -> bool:
        said.append("of the former stream")
        return True

    admission.ship("b", 7)
    admission.admit("b", counts)
    admission.ship("b", 8)
    assert admission.stream("b") == 8
    admission.count({"b"})
    assert said == []


def test_confirms_go_on_without_one_that_counts_no_more() -> None:
    admission, said = Admission(), list[str]()
    admission.release("b", lambda: said.append("b"))
    admission.release("c", lambda: said.append("c"))
    admission.let_go({"c"})
    assert said == ["b"]
    admission.let_go(())
    assert said == ["b", "c"]
