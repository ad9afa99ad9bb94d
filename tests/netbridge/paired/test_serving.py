"""Two real brokers and their applications."""

from __future__ import annotations

from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.broker.programs import of_folder
from shmbroker.netbridge.client import connecting
from shmbroker.netbridge.wire.words import Role
from tests.netbridge.paired.conftest import (
    NAMES,
    PASSWORD,
    PATIENCE,
    SHM,
    Duo,
    Made,
    of,
    reasons,
    waits,
)
from tests.support.programs import is_shown_and_disconnected


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]], ids="-".join)
def test_they_start_in_any_order(duo: Made, order: tuple[str, str]) -> None:
    two = duo()
    two[order[0]].start().becomes("live")
    waits(two[order[0]], pair="pending")
    two[order[1]].start()
    waits(two["one"], pair="active", peer="passive")
    waits(two["two"], pair="passive", peer="active")
    two.tries("one")
    with pytest.raises(ConnectionClosed, match="403 passive"):
        two.tries("two")


def test_programs_keep_to_their_list(duo: Made) -> None:
    """What a broker told of itself would stand before it, and a backup be asked first."""
    elsewhere = {"connectors.outside.uri": "tcp://127.0.0.2:1"}
    two = duo(elsewhere).up()
    program = two.program()
    program.declare_queue("orders")  # it has heard by then what is told
    assert [each.uri for each in program.topology()] == [two.address(name) for name in NAMES]


def test_a_takeover_needs_silence_and_a_client_and_there_is_no_failback(duo: Made) -> None:
    two = duo().up()
    right = two.program()
    right.declare_queue("orders", durable=True).publish(b"of the primary")
    right.close()  # else it would ask
    two["one"].kill()
    two.silent("two")
    assert of(two["two"])["pair"] == "passive", "nobody has asked"
    wrong = two.program("two", "one")
    assert wrong.uri == two.address("two")
    assert reasons(two["two"])[-1] == ("active", "client asked")
    assert wrong.topology()[0].standing == "live"
    with pytest.raises(shmbroker.NotFound):
        wrong.queue("orders")
    wrong.close()

    two["one"].start()
    waits(two["one"], pair="passive", peer="active")
    with pytest.raises(ConnectionClosed, match="403 passive"):
        two.tries("one")
    two["two"].kill()
    two["two"].start()
    waits(two["one"], pair="active", peer="passive")
    waits(two["two"], pair="passive", peer="active")
    assert reasons(two["one"])[-1] == ("active", "peer pending")
    again = two.program("two", "one")
    assert again.uri == two.address("one")
    assert again.queue("orders").get(timeout=60).body == b"of the primary"


def test_programs_are_shown_and_disconnected_and_an_admin_looks_at_either(duo: Made) -> None:
    admits: dict[str, object] = {
        "acceptors.all.roles": ["client", "peering", "viewer", "admin"],
        "credentials.programs.role": ["client", "admin"],
    }
    two = duo(admits).up()
    program = two.program("one", more="&failover-mode=application")
    program.declare_queue("orders").publish(b"x", timeout=60)
    [row] = of_folder(two["one"].folder)
    assert of_folder(two["two"].folder) == [], "it is passive"
    is_shown_and_disconnected(two["one"].folder, two.vhosts["one"], row["name"])
    with pytest.raises(ConnectionClosed):
        program.queue("orders").publish(b"late", timeout=60)
    for name in NAMES:
        uri = f"{two.address(name)}?{SHM}"
        login = connecting.Login(uri, "programs", PASSWORD, "admin", role=Role.ADMIN)
        with connecting.connect(login) as admin:
            [row] = admin.order("show", noun="programs")
            assert (row["name"], row["role"], row["attached"]) == ("admin", "admin", True)
            with pytest.raises(shmbroker.NotAllowed):
                admin.declare_queue("diverged")


def test_without_silence_a_client_changes_nothing(duo: Made) -> None:
    two = duo({"ha.pair.failover-timeout": "60s"}).up()
    two["one"].kill()
    with pytest.raises(ConnectionClosed, match="403 passive"):
        two.tries("two")


def test_a_planned_stop_skips_the_silence(duo: Made) -> None:
    two = duo({"ha.pair.failover-timeout": "60s"}).up()
    assert two["one"].stop() == 0
    waits(two["two"], pair="passive", peer="leaving")
    assert two.program().uri == two.address("two")


def test_a_lone_primary_serves_who_asks_and_a_lone_backup_never(duo: Made) -> None:
    two = duo()
    two["two"].start()
    waits(two["two"], pair="pending")
    with pytest.raises(ConnectionClosed, match="403 pending"):
        two.tries("two")
    two.silent("two")
    with pytest.raises(ConnectionClosed, match="403 pending"):
        two.tries("two")
    two["two"].kill()
    two["one"].start()
    waits(two["one"], pair="pending")
    assert two.program("one").uri == two.address("one")
    assert reasons(two["one"])[-1] == ("active", "client asked")


def test_a_lone_primary_may_be_told_never_to_serve(duo: Made) -> None:
    two = duo({"ha.pair.accept-when-pending": "none"})
    two["one"].start()
    waits(two["one"], pair="pending")
    two.silent("one")
    with pytest.raises(ConnectionClosed, match="403 pending"):
        two.tries("one")


def test_a_vhost_of_another_pair(duo: Made) -> None:
    two = duo().up()
    for _ in range(2):
        with pytest.raises(ConnectionClosed, match="402 this pair serves vhost /, not other"):
            two.tries("one", "other")
    [line] = [each for each in two["one"].said() if each.get("asked")]
    assert (line["asked"], line["served"], line["level"]) == ("other", "/", "warning")
    assert of(two["one"])["pair"] == "active"


SOON = "&call-timeout=300ms&call-failover-timeout=300ms"


def both_serve(duo: Made, **more: object) -> tuple[Duo, Any, Any]:
    two = duo(more).up()
    first = two.program("one", "two")
    two.stands_still("one")
    two.silent("two")
    second = two.program("two", "one", more=SOON)
    assert of(two["two"])["pair"] == "active"
    two.goes_on("one")
    return two, first, second


def test_a_conflict_stops_both_until_a_reset(duo: Made) -> None:
    two, first, second = both_serve(duo)
    for name in NAMES:
        waits(two[name], pair="conflict")
        with pytest.raises(ConnectionClosed, match="403 conflict"):
            two.tries(name)
    with pytest.raises(shmbroker.Error):
        second.declare_queue("late")
    assert two.resets("two") == "", "one of both is enough"
    waits(two["one"], pair="active", peer="passive")
    waits(two["two"], pair="passive", peer="active")
    assert "no conflict" in two.resets("one")
    first.declare_queue("on")
    two.tries("one")


def test_the_primary_wins_a_conflict(duo: Made) -> None:
    two, _, _ = both_serve(duo, **{"ha.pair.on-conflict": "primary-wins"})
    waits(two["two"], pair="passive", peer="active")
    waits(two["one"], pair="active", peer="passive")
    assert reasons(two["two"])[-1] == ("passive", "both were active, and the primary wins")
    two.tries("one")
    with pytest.raises(ConnectionClosed, match="403 passive"):
        two.tries("two")


def test_programs_in_shared_memory_are_not_asked(duo: Made) -> None:
    two = duo().up()
    with shmbroker.connect(f"shm://{two.vhosts['two']}") as program:
        program.declare_queue("q").publish(b"of the backup")
    assert of(two["two"])["pair"] == "passive"
    assert PASSWORD not in str(two["two"].said())


@pytest.mark.parametrize("which", ["programs", "pair"])
def test_passwords_that_are_changed_at_both_link_them_again(duo: Made, which: str) -> None:
    """The one of programs gives the acceptors their key."""
    two = duo({"credentials.pair.password": "of the pair", "ha.pair.failover-timeout": "60s"}).up()
    old = "of the pair" if which == "pair" else PASSWORD
    for name in NAMES:
        file = two[name].folder / FILE
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, "a newer password"))
        answer = reloading.asked(two[name].folder, PATIENCE)
        assert answer is not None
        assert answer["applied"] == [f"credentials.{which}.password"]
        if name == "one" and which == "programs":
            two.linked("two", is_so=False)
    two.linked("two")
    assert of(two["two"])["pair"] == "passive"


def test_credentials_that_its_pair_has_until_a_restart_are_not_taken_away(duo: Made) -> None:
    """Neither broker has ended, and they find each other again."""
    two = duo({"credentials.pair.password": "of the pair"}).up()
    for name in NAMES:
        file = two[name].folder / FILE
        text = file.read_text().replace("[credentials.pair]", "[credentials.other]")
        file.write_text(text.replace('credentials = "pair"', 'credentials = "other"'))
        answer = reloading.asked(two[name].folder, PATIENCE)
        assert answer is not None
        assert "ha.pair.credentials names [credentials.pair]" in answer["why"]
        two.linked(name)
