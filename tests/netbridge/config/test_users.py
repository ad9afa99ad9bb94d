"""Users of an instance: added, changed and removed in its file, whose other lines stay."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import threading
import tomllib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from shmbroker import InvalidArgument, NotFound, Untrusted
from shmbroker.cli.users import Here
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config import masking
from shmbroker.ipc.instance.config.config import Config, ConfigError, toml_value
from shmbroker.ipc.instance.config.edit import Edit
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.store import Store
from shmbroker.ipc.instance.whole import write_text
from shmbroker.netbridge.broker.operators import Operators
from shmbroker.netbridge.config import config
from shmbroker.netbridge.config import users as module
from shmbroker.netbridge.config.users import Change, LastAdmin, Users
from shmbroker.netbridge.serving.orders import USERS
from tests.cli.command import eventually
from tests.conftest import vhost_for_a_while
from tests.support.other_user import OTHER
from tests.support.runs import Run

FILE = """\
# of the shop
[instance]
name = "shop"          # as people see it

[console]
listen = "127.0.0.1:0"
credentials = ["olga"]

[acceptors.programs]
uri = "tcp://127.0.0.1:5000"
roles = ["client"]

[credentials.olga]
role = "admin"
password = { file = "olga.password" }

# programs of the shop
[credentials."shop"]
role = [
    "client",
]
password = "plain and long enough"
"""
GOOD = "correct horse battery"


@pytest.fixture
def users(tmp_path: Path) -> Users:
    (tmp_path / "shmbroker.toml").write_text(FILE)
    (tmp_path / "olga.password").write_text("staple staple staple\n")
    (tmp_path / "olga.password").chmod(0o600)
    return Users(tmp_path, lambda folder: None)


def text(users: Users) -> str:
    return (users.folder / "shmbroker.toml").read_text()


def revealed(users: Users, name: str) -> str:
    login = config.load(users.folder)[1].logins[name]
    return login.password.revealed(name, users.folder)


def test_they_are_listed_without_passwords(users: Users) -> None:
    olga, shop = users.listed()
    assert (olga.name, olga.roles, olga.logs_in, olga.kept) == ("olga", ("admin",), True, "file")
    assert (shop.roles, shop.logs_in, shop.kept) == (("client",), False, "plain")
    assert "plain and long" not in repr(users.listed()) + repr([e.fields for e in users.listed()])
    assert GOOD not in repr(Change(password=GOOD))


def test_one_is_added_and_all_else_stays(users: Users) -> None:
    assert (
        users.add("nightly", "batch", Change(("viewer",), None, "short")) is not None
    )  # a warning
    [*_, added] = users.listed()
    assert (added.name, added.user, added.roles, added.logs_in) == (
        "nightly", "batch", ("viewer",), True
    )  # fmt: skip
    assert revealed(users, "nightly") == "short"
    assert (users.folder / "nightly.password").stat().st_mode & 0o777 == 0o600
    assert text(users).startswith(FILE.partition("credentials =")[0])
    assert "# programs of the shop\n" in text(users)
    users.remove("nightly")
    assert tomllib.loads(text(users)) == tomllib.loads(FILE)
    assert "# as people see it" in text(users)
    assert not (users.folder / "nightly.password").exists()


def test_what_a_name_says_adds_no_table(users: Users) -> None:
    """The name by which somebody logs in stays one value; one of two lines is refused."""
    for number, login in enumerate(('x" #\'', "\\", "''", '"""')):
        users.add(f"eve{number}", login, Change(("viewer",), None, GOOD))
        assert users.listed()[-1].user == login
        users.remove(f"eve{number}")
    with pytest.raises(ConfigError, match="user is a name"):
        users.add("eve", 'x"\n[console]\nlisten = "0.0.0.0:1"', Change(("viewer",), None, GOOD))
    assert tomllib.loads(text(users)) == tomllib.loads(FILE)


def test_the_key_of_an_acceptor_stays_that_of_its_first_user(users: Users) -> None:
    users.add("other", None, Change(("client",), None, GOOD))
    acceptor = config.load(users.folder)[1].acceptors["programs"]
    assert acceptor.credentials == "shop"


def test_another_password_and_other_roles(users: Users) -> None:
    users.change("olga", Change(password=GOOD))
    assert revealed(users, "olga") == GOOD
    assert text(users) == FILE  # its file has it
    users.change("shop", Change(password=GOOD))
    assert revealed(users, "shop") == GOOD
    assert "plain and long" not in text(users)
    with pytest.raises(ConfigError, match=r"\[credentials.shop\] is written so that no program"):
        users.change("shop", Change(roles=("client", "viewer")))  # its list has several lines
    users.add("eve", None, Change(("admin",), None, GOOD))
    users.change("olga", Change(roles=("client",)))
    assert users.listed()[0].logs_in is False


@pytest.mark.parametrize("is_masked", [False, True])
def test_a_file_of_before_is_no_reason_to_keep_the_password(users: Users, is_masked: bool) -> None:
    if is_masked:
        key = masking.made_key(users.folder / masking.FILE)
        masked = toml_value({"masked": masking.masked("plain and long enough", key)})
        (users.folder / "shmbroker.toml").write_text(
            FILE.replace('"plain and long enough"', masked)
        )
    (users.folder / "shop.password").write_text("of some time ago\n")
    (users.folder / "shop.password").chmod(0o600)
    users.change("shop", Change(password=GOOD))
    assert revealed(users, "shop") == GOOD


def test_a_file_with_the_password_of_another_one_stays(users: Users) -> None:
    place = users.folder / "olga.password"
    place.rename(users.folder / "shop.password")
    changed = FILE.replace("olga.password", "shop.password")
    (users.folder / "shmbroker.toml").write_text(changed)
    with pytest.raises(InvalidArgument, match="has another password of"):
        users.change("shop", Change(password=GOOD))
    assert text(users) == changed
    assert revealed(users, "olga") == "staple staple staple"


def test_what_is_refused_leaves_everything_as_it_was(users: Users) -> None:
    for name, given, why in [
        ("olga", Change(("viewer",), None, GOOD), "there is a user olga already"),
        ("a/b", Change(("viewer",), None, GOOD), "names no user"),
        ("eve", Change(("viewer",), None, ""), "is empty"),
        ("eve", Change(("viewer",), None, "two\nlines"), "more than one line"),
        ("eve", Change(("king",), None, GOOD), "a role is one of"),
        ("eve", Change(("client",), True, GOOD), "the role admin or viewer"),
        ("eve", Change(("viewer",)), "needs a password"),
    ]:
        with pytest.raises(InvalidArgument, match=why):
            users.add(name, None, given)
    with pytest.raises(NotFound):
        users.remove("eve")
    assert text(users) == FILE
    assert not (users.folder / "eve.password").exists()


@pytest.mark.parametrize(
    "change", [Change(roles=("viewer",)), Change(logs_in=False), Change(roles=("client",))]
)
def test_the_last_admin_stays(users: Users, change: Change) -> None:
    with pytest.raises(LastAdmin, match="olga is the last admin"):
        users.change("olga", change)
    with pytest.raises(LastAdmin):
        users.remove("olga")
    assert text(users) == FILE
    assert (users.folder / "olga.password").exists()


def test_one_that_something_needs_stays(users: Users) -> None:
    with pytest.raises(InvalidArgument, match="admits nobody"):
        users.remove("shop")
    assert text(users) == FILE


def test_what_the_broker_refuses_is_taken_back(users: Users) -> None:
    def refuses(folder: Path) -> None:
        assert config.load(folder)[1].logins.keys() == {"olga", "shop", "eve"}
        raise InvalidArgument("not now")

    with pytest.raises(InvalidArgument, match="not now"):
        Users(users.folder, refuses).add("eve", None, Change(("viewer",), None, GOOD))
    assert text(users) == FILE
    assert not (users.folder / "eve.password").exists()
    with pytest.raises(AssertionError):
        Users(users.folder, refuses).change("olga", Change(password=GOOD))
    assert revealed(users, "olga") == "staple staple staple"


@pytest.mark.parametrize("roles", [None, ("admin", "client")])
def test_a_disk_that_is_full_for_the_file_leaves_the_password_as_it_was(
    users: Users, monkeypatch: pytest.MonkeyPatch, roles: tuple[str, ...] | None
) -> None:
    def fills(place: Path, content: str, *, synced: bool) -> None:
        if place.name == "shmbroker.toml":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_text(place, content, synced=synced)

    def refuses(folder: Path) -> None:
        raise InvalidArgument("not now")

    monkeypatch.setattr(module, "write_text", fills)
    with pytest.raises((OSError, InvalidArgument)):
        Users(users.folder, refuses).change("olga", Change(roles, None, GOOD))
    assert text(users) == FILE
    assert revealed(users, "olga") == "staple staple staple"


def test_a_password_that_is_elsewhere_is_changed_there(users: Users) -> None:
    place = users.folder / "shmbroker.toml"
    for secret in ('{ env = "OLGA" }', '{ file = "/run/secrets/olga" }'):
        changed = FILE.replace('{ file = "olga.password" }', secret)
        place.write_text(changed)
        with pytest.raises(InvalidArgument, match="change it there"):
            users.change("olga", Change(password=GOOD))
        assert text(users) == changed


def test_a_file_with_several_tables_of_one_kind_is_edited_where_it_is_meant(tmp_path: Path) -> None:
    edit = Edit(tmp_path, '[a."x.y"]\nk = 1\n\n[a.z]\nk = """\n[a.z]\n"""\n')
    edit.put("a.x.y", "k", 2)
    edit.put("a.w", "k", ["v"])
    edit.drop_table("a.x.y")
    assert tomllib.loads(edit.text) == {"a": {"z": {"k": "[a.z]\n"}, "w": {"k": ["v"]}}}
    with pytest.raises(ConfigError, match="no program may change it"):
        edit.put("a.z", "k", 3)


class Blocked(NamedTuple):
    """The file of olga's password is a folder, so it cannot be written."""

    folder: Path

    @property
    def audit(self) -> list[tuple[str, str, bool]]:
        log = config.load(self.folder)[0].log
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [(each["verb"], each["name"], "olga.password" in each["why"]) for each in lines]


@pytest.fixture
def blocked(users: Users) -> Blocked:
    (users.folder / "olga.password").unlink()
    (users.folder / "olga.password").mkdir()
    return Blocked(users.folder)


def test_a_change_that_fails_is_in_the_log_by_the_command(blocked: Blocked) -> None:
    here = Here(blocked.folder)
    with pytest.raises(OSError, match=r"olga\.password"):
        here.change("olga", Change(password=GOOD))
    with pytest.raises(NotFound):
        here.change("nobody", Change(roles=["client"]))
    assert blocked.audit == [("user password", "olga", True)]


def test_a_change_that_fails_is_in_the_log_over_a_link(blocked: Blocked) -> None:
    found = config.load(blocked.folder)[0]
    operators = Operators(found, Log(found.log, found.name), lambda order: None)
    given = {"noun": USERS, "verb": "change", "login": "me", "user": "me (a link)"}
    with pytest.raises(OSError, match=r"olga\.password"):
        operators.carry_out(given | {"name": "olga", "password": GOOD})
    with pytest.raises(NotFound):
        operators.carry_out(given | {"name": "nobody", "roles": ["client"]})
    assert blocked.audit == [("user password", "olga", True)]


def test_whoever_is_not_the_user_of_the_broker_changes_nothing(users: Users) -> None:
    """Root, say: the broker could not read it."""
    run = users.folder / RUN
    run.mkdir()
    os.chown(run, OTHER, OTHER)
    with pytest.raises(Untrusted, match=f"user {OTHER}"):
        users.change("shop", Change(password=GOOD))
    assert text(users) == FILE
    assert not list(run.iterdir())


def test_a_broker_that_is_starting_hears_of_a_change_before_it_is_said_to_be_done(
    tmp_path: Path,
) -> None:
    """It has read its file, and cannot be asked yet."""
    goes_on, real = multiprocessing.Event(), Store.of

    def later(config: Config, *, moved: bool = False) -> Store:
        goes_on.wait()
        return real(config, moved=moved)

    with vhost_for_a_while() as vhost:
        logins = {f"credentials.{name}.password": GOOD for name in ("olga", "shop")}
        roles = {f"credentials.{name}.role": "client" for name in ("olga", "shop")}
        run = Run(tmp_path / "a", vhost, "live", {**logins, **roles})
        run.before = partial(setattr, Store, "of", later)
        run.start()
        try:
            eventually(lambda: status.is_running(run.folder))
            users = Users(run.folder, module.reload)
            removing = threading.Thread(target=users.remove, args=("olga",))
            removing.start()
            removing.join(0.3)
            assert removing.is_alive()
            goes_on.set()
            removing.join()
            assert "reloaded" in run.events()
            assert run.becomes("live").stop() == 0
        finally:
            goes_on.set()
            run.kill()
