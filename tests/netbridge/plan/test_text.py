"""The text of a uri: every form, every parameter, and what is said of one that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.ipc.instance.config.option import Option
from shmbroker.netbridge.plan.parameter import (
    ALIASES,
    MASTERSLAVE,
    OF_BOTH,
    OF_FAILOVER,
    OF_REGISTRY,
    OF_SINGLE,
    OF_STATIC,
    OF_UDP,
    kebab,
)
from shmbroker.netbridge.plan.text import UriError, heard, parse, parsed, single
from shmbroker.netbridge.plan.uri import Found, Members, Shared, Single, Uri

KEY = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("tcp://a", "tcp://a:61616"),
        ("tcp://A.Example:5", "tcp://a.example:5"),
        ("a", "tcp://a:61616"),
        ("a:5", "tcp://a:5"),
        ("*:5", "tcp://*:5"),
        ("tcp://[::1]:5/orders", "tcp://[::1]:5/orders"),
        ("[FE80::1]", "tcp://[fe80::1]:61616"),
        ("tcp://a/", "tcp://a:61616"),
        ("tcp://a/%2F", "tcp://a:61616"),
        ("tcp://a/two%20words", "tcp://a:61616/two%20words"),
        (f"tcp://a?key={KEY.upper()}", f"tcp://a:61616?key={KEY}"),
        ("tcp://a?windowSize=65536", "tcp://a:61616?window-size=64KiB"),
        ("shm://orders", "shm://orders"),
        ("static:(a,b:5)", "static:(tcp://a:61616,tcp://b:5)"),
        ("static://(a)", "static:(tcp://a:61616)"),
        ("STATIC:( a , b )", "static:(tcp://a:61616,tcp://b:61616)"),
        ("failover:(a,b)", "failover:(tcp://a:61616,tcp://b:61616)"),
        ("masterslave:(a,b)", "masterslave:(tcp://a:61616,tcp://b:61616)"),
        ("static:failover:(a,b)", "static:(failover:(tcp://a:61616,tcp://b:61616))"),
        ("static:(failover:(a,b),c)",
         "static:(failover:(tcp://a:61616,tcp://b:61616),tcp://c:61616)"),
        ("static:failover://(a,b)?randomize=false",
         "static:(failover:(tcp://a:61616,tcp://b:61616)?randomize=false)"),
        ("static:(failover:(a)?timeout=5,b?key=" + KEY + ")?nested.callTimeout=7",
         "static:(failover:(tcp://a:61616)?timeout=5ms,tcp://b:61616?key=" + KEY
         + ")?nested.call-timeout=7ms"),
        ("failover:(a,b)?priorityURIs=a,b:61616",
         "failover:(tcp://a:61616,tcp://b:61616)?priority-uris=a%2Cb:61616"),
        ("failover:(a)?updateURIsURL=file:/x/y",
         "failover:(tcp://a:61616)?update-uris-url=file:/x/y"),
        ("discovery:dc", "discovery:dc"),
        ("discovery:(udp://231.7.7.7:9876)?localBindAddress=10.0.0.1",
         "discovery:(udp://231.7.7.7:9876)?local-bind-address=10.0.0.1"),
        ("discovery:(registry:/var/x)?channel=c", "discovery:(registry:/var/x)?channel=c"),
    ],
)  # fmt: skip
def test_each_form_is_read_and_printed(text: str, printed: str) -> None:
    assert str(parse(text)) == printed
    assert parse(printed) == parse(text)


def test_what_the_forms_mean() -> None:
    assert parse("a:5") == Single("a", 5, "/")
    assert parse("shm://orders") == Shared("orders")
    assert parse("static:(a)") == Members("static", (Single("a"),))
    assert parse("static:failover:(a,b)") == parse("static:(failover:(a,b))")
    assert parse("discovery:dc") == Found("name", "dc")


SAMPLES: dict[str, tuple[str, object]] = {
    "time": ("750", 0.75), "number": ("7", 7), "size": ("128KiB", 128 << 10),
    "factor": ("1.5", 1.5), "flag": ("no", False), "key": (KEY, KEY), "text": ("x", "x"),
    "members": ("a:61616", ("a:61616",)),
}  # fmt: skip


def sample(option: Option) -> tuple[str, Any]:
    if option.name in MASTERSLAVE:
        value = MASTERSLAVE[option.name]
        return str(value).lower(), value
    words = {"failover-mode": "application", "load-balancing": "my.module:choose"}
    if option.kind.name == "word":
        return words[option.name], words[option.name]
    if option.name in ("origin-retention", "connection-ttl"):
        return "2h", 7200.0
    return SAMPLES[option.kind.name]


def camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(each.capitalize() for each in rest)


FORMS = {
    "tcp://a": OF_SINGLE,
    "static:(a,b)": OF_STATIC,
    "failover:(a,b)": OF_FAILOVER,
    "masterslave:(a,b)": OF_BOTH,
    "discovery:(udp://231.7.7.7:9876)": OF_UDP,
    "discovery:(registry:/x)": OF_REGISTRY,
}
ROWS = [(form, option) for form, table in FORMS.items() for option in table.values()]


@pytest.mark.parametrize(("form", "option"), ROWS, ids=[f"{f}-{o.name}" for f, o in ROWS])
def test_each_parameter_has_two_spellings_and_one_print(form: str, option: Option) -> None:
    text, value = sample(option)
    for name in (option.name, camel(option.name)):
        uri = parse(f"{form}?{name}={text}")
        assert not isinstance(uri, Shared)
        assert uri.values == ((option.name, value),)
        assert f"?{option.name}=" in str(uri)
        assert parse(str(uri)) == uri


def test_in_static_failover_each_parameter_goes_to_the_list_that_has_it() -> None:
    uri = parse("static:failover:(a,b)?randomize=false&back-off-multiplier=3&"
                "initial-reconnect-delay=5&nested.key=" + KEY)  # fmt: skip
    assert isinstance(uri, Members)
    [inner] = uri.members
    assert dict(uri.values) == {"back-off-multiplier": 3.0, "initial-reconnect-delay": 0.005}
    assert dict(inner.values) == {
        "randomize": False, "initial-reconnect-delay": 0.005, "nested.key": KEY,
    }  # fmt: skip


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_each_name_of_amq(alias: str, name: str) -> None:
    text, value = SAMPLES[OF_FAILOVER[name].kind.name]
    for spelling in (alias, camel(alias)):
        uri = parse(f"failover:(a,b)?{spelling}={text}")
        assert isinstance(uri, Members)
        assert uri.values == ((name, value),)


@pytest.mark.parametrize(
    "name",
    ["priorityURIs", "updateURIsURL", "updateURIsSupported", "useExponentialBackOff"],
)
def test_the_spelling_of_activemq(name: str) -> None:
    assert kebab(name) in OF_FAILOVER


def test_repeated_members_are_dropped_with_a_warning() -> None:
    found = parsed("failover:(a,b,tcp://A:61616?call-timeout=5,failover:(c,d),failover:(c,d))")
    assert str(found.uri) == (
        "failover:(tcp://a:61616,tcp://b:61616,failover:(tcp://c:61616,tcp://d:61616))"
    )
    assert len(found.warnings) == 2
    assert "tcp://a:61616" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "at", "complaint"),
    [
        ("failover:()", "^)", "this list is empty"),
        ("static:( )", "^)", "this list is empty"),
        ("failover:(a,,b)", "^,b", "expected a broker or a list"),
        ("failover:(a,)", "^)", "a member is missing"),
        ("failover:(a", "", "expected ')' or ','"),
        ("failover:(a))", "^)", "expected '?' or the end"),
        ("tcp://", "", "expected a broker"),
        ("tcp://a:0", "^0", "a port is 1 to 65535, not '0'"),
        ("tcp://a:65536", "^65536", "a port is 1 to 65535, not '65536'"),
        ("tcp://a:6x", "^6x", "a port is 1 to 65535, not '6x'"),
        ("tcp://a:/x", "^/x", "a port is 1 to 65535"),
        ("failover:(a,b:port)", "^port", "a port is 1 to 65535"),
        ("tcp://[::1", "^[::1", "expected a broker"),
        ("tcp://[1.2.3.4]:5", "^[1.2", "an address in brackets is IPv6"),
        ("tcp://a!b", "^a!b", "is no host"),
        ("tcp://a/x%2Fy", "^x%2F", "no slash"),
        ("tcp://a/x%00y", "^x%00", "no slash"),
        (f"tcp://a/{'x' * 256}", "^x", "1 to 255 bytes"),
        ("failver:(a,b)", "^failver", "did you mean failover:?"),
        ("static:failver:(a,b)", "^failver", "did you mean failover:?"),
        ("masterslv://(a,b)", "^masterslv", "did you mean masterslave:?"),
        ("ftp://a", "^ftp", "ftp: is not known"),
        ("failover:(a,http://b)", "^http", "http: is not known"),
        ("masterslave:(a)", "^masterslave", "at least two members"),
        ("masterslave:(a,a)", "^masterslave", "at least two members"),
        ("masterslave:(a,b)?randomize=true", "^randomize", "masterslave: sets randomize itself"),
        ("masterslave:(a,b)?maxReconnectAttempts=1", "^maxR", "sets max-reconnect-attempts itself"),
        ("failover:(static:(a,b),c)", "^static", "failover: has one link"),
        ("failover:(failover:(a)?timeout=5,c)", "^timeout", "there is no parameter timeout here"),
        ("failover:(a)?randomise=no", "^randomise", "did you mean randomize?"),
        ("failover:(a)?retryInterva=5", "^retryInterva", "did you mean retry-interval?"),
        ("failover:(a)?nested.randomize=no", "^nested", "there is no parameter nested.randomize"),
        ("tcp://a?nested.key=5", "^nested", "there is no parameter nested.key"),
        ("tcp://a?timeout=5", "^timeout", "there is no parameter timeout here"),
        ("shm://a?timeout=5", "^?timeout", "expected the end"),
        ("discovery:dc?channel=5", "^discovery", "has no parameters"),
        ("discovery:(udp://1.2.3.4)", "^discovery", "by group and port"),
        ("discovery:(udp://1.2.3.4:99999)", "^discovery", "by group and port"),
        ("discovery:(ftp:x)", "^discovery", "discovery: is not known"),
        ("failover:(a)?timeout", "", "expected '='"),
        ("failover:(a)?timeout=", "^timeout", "timeout is a time"),
        ("failover:(a)?timeout=5&timeout=6", "^timeout=6", "timeout is given twice"),
        ("failover:(a)?retry-interval=5&initialReconnectDelay=6", "^initialR", "given twice"),
        ("failover:(a)?max-reconnect-attempts=-2", "^max", "in 0…, -1: no limit, not '-2'"),
        ("failover:(a)?initial-reconnect-delay=0", "^initial", "in 1ms…1h, not '0'"),
        ("failover:(a)?max-reconnect-delay=61m", "^max", "in 1ms…1h, not '61m'"),
        ("failover:(a)?reconnect-delay-exponent=0.9", "^reconnect", "in 1…10, not '0.9'"),
        ("failover:(a)?reconnect-delay-exponent=11", "^reconnect", "in 1…10, not '11'"),
        ("failover:(a)?max-reconnect-delay=1&initial-reconnect-delay=5s", "^initial",
         "max-reconnect-delay is at least initial-reconnect-delay"),
        ("failover:(a)?randomize=maybe", "^randomize", "true or false"),
        ("failover:(a)?failover-mode=manual", "^failover-mode", '"automatic" or "application"'),
        ("failover:(a)?load-balancing=fair", "^load", "round-robin"),
        ("failover:(a,b)?priority-uris=c", "^priority", "c is no member of this list"),
        ("tcp://a?key=abc", "^key", "64 hexadecimal digits"),
        ("tcp://a?heartbeat-misses=1", "^heartbeat", "in 2…100, not '1'"),
        ("tcp://a?heartbeatInterval=50&checkPeriod=5s", "", "exclude each other"),
        ("tcp://a?checkPeriod=5s&connectionTtl=9s", "", "at least twice check-period"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text: str, at: str, complaint: str) -> None:
    with pytest.raises(UriError) as error:
        parse(text)
    said = str(error.value)
    assert complaint in said
    _, shown, arrow = said.split("\n")
    if at:
        assert shown[arrow.index("^") :].startswith(at[1:])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text(text: str) -> None:
    with pytest.raises(UriError, match="this uri is empty"):
        parse(text)


def test_texts_without_end_and_lists_without_bottom() -> None:
    with pytest.raises(UriError, match="more than 16384 bytes"):
        parse("a" * 20_000)
    with pytest.raises(UriError, match="nested more than"):
        parse("static:(" * 1000 + "a" + ")" * 1000)


def test_one_broker_is_named() -> None:
    assert single("a") == Single("a")
    with pytest.raises(UriError, match="one broker is named here"):
        single("failover:(a,b)")


# --- parse ∘ print --------------------------------------------------------------------------------

names = st.text("abc-_.019", min_size=1, max_size=8).filter(lambda each: each[0] in "abc")
vhosts = st.text(min_size=1, max_size=12).filter(
    lambda each: (
        "/" not in each
        and all(ord(c) >= 32 and ord(c) != 127 and not 0xD800 <= ord(c) < 0xE000 for c in each)
    )
)
hosts = st.one_of(names, st.ip_addresses().map(str))


def values(table: dict[str, Option], *, without: set[str] = frozenset()) -> st.SearchStrategy[Any]:  # type: ignore[assignment]
    def value(name: str) -> st.SearchStrategy[Any]:
        kind = table[name].kind
        drawn = {
            "time": st.integers(1, 3_600_000).map(lambda ms: round(ms * 1_000_000) / 1e9),
            "number": st.integers(2, 100),
            "size": st.integers(64 << 10, 64 << 20),
            "factor": st.integers(10, 100).map(lambda tenths: tenths / 10),
            "flag": st.booleans(),
            "key": st.just(KEY),
            "text": st.text("ab/:,&=?()% ü", min_size=1, max_size=9),
            "word": st.just(sample(table[name])[1]),
        }
        return drawn[kind.name].filter(lambda each: accepts(table[name], each))

    allowed = sorted(
        name
        for name in table
        if name not in without
        and table[name].kind.name != "members"
        and name not in ("check-period", "connection-ttl", "max-reconnect-delay")
    )
    names_ = st.lists(st.sampled_from(allowed), unique=True, max_size=4)
    return names_.flatmap(
        lambda chosen: st.tuples(*(st.tuples(st.just(n), value(n)) for n in chosen))
    )


def accepts(option: Option, value: object) -> bool:
    """Whether it is within the bounds of the option."""
    try:
        option.value_of(option.kind.text(value) if option.kind.name == "time" else value)
    except ValueError:
        return False
    return True


singles = st.builds(
    Single, hosts, st.integers(1, 65535), st.one_of(st.just("/"), vhosts), values(OF_SINGLE)
)


def distinct(members: list[Any]) -> tuple[Any, ...]:
    return tuple({getattr(each, "place", each): each for each in members}.values())


def lists(scheme: str, table: dict[str, Option], member: Any, least: int = 1) -> Any:
    without = set(MASTERSLAVE) if scheme == "masterslave" else set()
    members = st.lists(member, min_size=least, max_size=4).map(distinct)
    return st.builds(
        Members, st.just(scheme), members.filter(lambda each: len(each) >= least),
        values(table, without=without),
    )  # fmt: skip


failovers = lists("failover", OF_FAILOVER, singles)
masterslaves = lists("masterslave", OF_BOTH, singles, 2)
statics = lists("static", OF_STATIC, st.one_of(singles, failovers, masterslaves))
founds = st.one_of(
    st.builds(Found, st.just("name"), names),
    st.builds(Found, st.just("udp"), st.just("231.7.7.7:9876"), values(OF_UDP)),
    st.builds(Found, st.just("registry"), names.map(lambda n: f"/{n}"), values(OF_REGISTRY)),
)
uris = st.one_of(singles, st.builds(Shared, vhosts), failovers, masterslaves, statics, founds)


@given(uris)
def test_what_is_printed_is_read_as_it_was(uri: Uri) -> None:
    found = parsed(str(uri))
    assert found.uri == uri
    assert not found.warnings
    assert str(found.uri) == str(uri)


@given(st.text("tcpsailoverm:/(),?&=a1[] .%", max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        uri = parse(text)
    except UriError:
        return
    assert parse(str(uri)) == uri


@pytest.mark.parametrize(("text", "found"), [
    ("tcp://a:1", Single("a", 1)),
    ("tcp://a:1/v?later=1", Single("a", 1, "v")),
    (f"tcp://a:1?later=1&key={KEY}&key={KEY}", Single("a", 1, values=(("key", KEY),))),
    ("tcp://a:1?key=short", Single("a", 1)),
    ("failover:(tcp://a:1)", None),
    ("tcp://a:99999", None),
    ("later://a:1", None),
    ("", None),
])  # fmt: skip
def test_of_what_a_broker_tells_a_later_version_may_tell_more(
    text: str, found: Single | None
) -> None:
    assert heard(text) == found
