"""[[mta]]: what an agent is, and what it does not go with."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE, ConfigError, toml_of
from shmbroker.netbridge.config.config import Network, layers, load
from shmbroker.netbridge.config.explain import explained
from tests.netbridge.config.test_links import CLUSTER

SITE = """
[credentials.site]
password = "correct horse battery"
role = "peering"
[credentials.apps]
password = "correct horse battery"
role = "client"
"""


def read(folder: Path, text: str) -> Network:
    (folder / FILE).write_text(text + SITE)
    return load(folder)[1]


def agent(
    *lines: str, name: str = "trade", host: str = "a:5555", mode: str = "2", login: str = "site"
) -> str:
    given = [f"name = '{name}'", f"host = '{host}'", f"mode = {mode}", f"login = '{login}'"]
    return "\n".join(["[[mta]]", *given, *lines, ""])


def test_one_that_is_off_is_checked_and_is_not_there(tmp_path: Path) -> None:
    assert read(tmp_path, agent(mode="0")).agents == {}
    with pytest.raises(ConfigError, match=r"mta.1.login names \[credentials.x\]"):
        read(tmp_path, agent(mode="0", login="x"))


def test_several_are_numbered_and_errors_say_which(tmp_path: Path) -> None:
    text = agent(mode="0") + agent("hosst = 'b'", mode="0", host="b")
    with pytest.raises(ConfigError, match=r"no option mta.2.hosst; did you mean mta.2.host\?"):
        read(tmp_path, text)


def test_a_file_that_is_written_has_the_same(tmp_path: Path) -> None:
    read(tmp_path, agent(mode="0") + agent(mode="0", host="b"))
    given = layers(tmp_path).values
    (tmp_path / FILE).write_text(toml_of(given))
    assert layers(tmp_path).values == given
    shown = {each.key: each.value for each in explained(layers(tmp_path), tmp_path / FILE)}
    assert shown["mta.2.host"] == "b"


@pytest.mark.parametrize(
    ("given", "mode"),
    [("0", 0), ("'0'", 0), ("'off'", 0), ("1", 1), ("'subscriber'", 1), ("'subscribe'", 1),
     ("2", 2), ("'publisher'", 2), ("'fanout'", 2), ("'forward-all'", 2), ("3", 3),
     ("'locator'", 3), ("4", 4), ("'both'", 4), ("'service'", 5)],
)  # fmt: skip
def test_modes_by_number_and_by_all_their_names(tmp_path: Path, given: str, mode: int) -> None:
    assert [each.mode for each in read(tmp_path, agent(mode=given)).agents.values()] == (
        [mode] if mode else []
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (agent(name=""), "the default exchange cannot be joined"),
        (agent(name="$marks"), "the name of an exchange"),
        (agent(name="a/b"), "the name of an exchange"),
        (agent(login="apps"), 'names [credentials.apps]: of role "peering" there are site'),
        (agent("vhost = 'x'", host="tcp://a/y", mode="0"), "names vhost 'y', and vhost is 'x'"),
        (agent(mode="5"), "0 to 4, or"),
        (agent(mode="true"), "0 to 4, or"),
        (agent(host="static:(a,b)"), "an [[mta]] for each"),
        (agent(host="discovery:lan"), "a broker, or two"),
        (agent(host="shm://x"), "a broker, or two"),
        (agent(mode="0", host=f"{'a' * 240}"), "too long for the name of a queue"),
        (agent(mode="0") * 2, "[mta.1] and [mta.2] join the exchange 'trade' to the same broker"),
        (agent(mode="0", host="a,b") + agent(mode="0", host="masterslave:(tcp://b,a)"),
         "join the exchange 'trade' to the same broker"),
        (agent("vhost = '/'", mode="0") + agent("vhost = 'x'", mode="0"),
         "join the exchange 'trade' to the same broker"),
        (agent() + agent(mode="3"), "both forward to it: forward-all and forward-else"),
        (agent(mode="4") + agent(mode="1"), "both subscribe to it: both and subscribe"),
        (agent(mode="4") + agent(mode="4", host="b"), "goes to one broker only"),
        ("mta = 5", "stands outside of any table"),
        ("mta = [5]", "stands in [mta], not in [mta.NAME]"),
        ("[[mta]]\nname = 'x'\n", "has no host"),
    ],
)  # fmt: skip
def test_what_does_not_go(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert complaint in str(error.value)


def test_agents_do_not_go_with_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[\[mta\]\] does not go with a \[cluster.NAME\] yet"):
        read(tmp_path, agent() + CLUSTER)


def test_agents_go_with_a_pair(tmp_path: Path) -> None:
    assert read(tmp_path, agent() + "[ha]\npolicy = 'pair'\n").agents
