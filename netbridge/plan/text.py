"""The text of a uri: its grammar, and errors that show the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import unquote

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.config.kind import Kind, is_name
from shmbroker.netbridge.link.option import Contradiction, heartbeat
from shmbroker.netbridge.plan.parameter import (
    ALIASES,
    MASTERSLAVE,
    NESTED,
    OF_BOTH,
    OF_FAILOVER,
    OF_INNER,
    OF_REGISTRY,
    OF_SINGLE,
    OF_STATIC,
    OF_UDP,
    Table,
    kebab,
)
from shmbroker.netbridge.plan.uri import (
    FAILOVER,
    PORT,
    ROOT,
    STATIC,
    Found,
    Member,
    Members,
    Shared,
    Single,
    Uri,
    Values,
    singles,
)
from shmbroker.netbridge.plan.uri import MASTERSLAVE as MASTERSLAVE_SCHEME

TEXT_BYTES_MAX: Final = 16 << 10
DEPTH_MAX: Final = 8
"""Lists inside of lists."""
PORT_MAX: Final = 65535
PAUSES: Final = ("initial-reconnect-delay", "max-reconnect-delay")
NUMBERS: Final = ("time", "number", "size", "factor", "flag")
"""Kinds of which a text of digits is a number."""
SCHEMES: Final = ("tcp", "shm", "static", "failover", "masterslave", "discovery")

# A value inside of a list ends at a comma; one behind the outermost list may have commas.
GRAMMAR: Final = r"""
start: single | SHARED -> shared | outer | found
outer: list ["?" wide ("&" wide)*]
inner: list ["?" narrow ("&" narrow)*]
list: SCHEME member ("," member)* ")"
?member: single | inner
single: [TCP] HOST [PORT] [VHOST] ["?" narrow ("&" narrow)*]
found: DISCOVERY ["?" wide ("&" wide)*]
narrow: NAME "=" [VALUE]
wide: NAME "=" [VALUE ("," VALUE)*]

TCP.3: "tcp://"i
SCHEME.3: /(static:failover|static|failover|masterslave):(\/\/)?\s*\(/i
SHARED.3: /shm:\/\/[^\s?,()&]+/i
DISCOVERY.3: /discovery:(\/\/)?(\((udp:\/\/|registry:)[^\s()]+\)|[^\s?,()&]+)/i
HOST: /\[[^\]\s]*\]|[^\s\/?#,&:()\[\]=]+/
PORT: /:[^\s\/?#,&()]+/
VHOST: /\/[^\s?#,&()]*/
NAME: /[^\s?#,&()=]+/
VALUE: /[^\s#,&()]+/
%ignore /[ \t\f\r\n]+/
"""

WORDS: Final = {
    "RPAR": "')'", "COMMA": "','", "QMARK": "'?'", "AMPERSAND": "'&'", "EQUAL": "'='",
    "NAME": "the name of a parameter", "VALUE": "a value", "PORT": "a port",
    "VHOST": "a vhost", "$END": "the end",
}  # fmt: skip
A_MEMBER: Final = {"TCP", "SCHEME", "HOST", "SHARED", "DISCOVERY"}
MAY_BE_SECRET: Final = (
    "it is wrong there, and not shown, as what has an @ may have a password. connect() takes "
    "tcp://USER:PASSWORD@HOST; what has one of / @ , ( ) ? is given by user= and password="
)
ROOM: Final = 60
"""Characters of the text that an error shows, at most, before and after the place."""


class UriError(InvalidArgument):
    """A uri is wrong; the message shows the place."""


@dataclass(frozen=True, slots=True)
class Parsed:
    uri: Uri
    warnings: tuple[str, ...]


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=False)


def complaint(text: str, at: int, what: str) -> UriError:
    """The error that shows the place, the character with the index `at`, unless the text may have
    a password."""
    if "@" in text:
        return UriError(f"uri, character {at + 1}: {MAY_BE_SECRET}")
    start = max(at - ROOM, 0)
    shown = "".join(each if each.isprintable() else " " for each in text[start : at + ROOM])
    return UriError(f"uri, character {at + 1}: {what}\n    {shown}\n    {' ' * (at - start)}^")


def parse(text: str) -> Uri:
    """UriError if it is none that the grammar knows."""
    return parsed(text).uri


def heard(text: str) -> Single | None:
    """What another broker has told, which may be of a later version: parameters that are not known
    here are left out.  None: it is no address of one broker."""
    try:
        found = parsed(text, is_ours=False).uri
    except UriError:
        return None
    return found if isinstance(found, Single) else None


def parsed(text: str, *, is_ours: bool = True) -> Parsed:
    """`is_ours`: its parameters are all to be known."""
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise UriError(f"this uri has more than {TEXT_BYTES_MAX} bytes")
    if not text.strip():
        raise UriError("this uri is empty: a broker is named as in tcp://host:61616")
    try:
        tree = _parser().parse(text)
    except UnexpectedCharacters as error:
        raise _strange(text, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None
    reading = _Reading(text, is_ours)
    return Parsed(reading.uri(tree), tuple(reading.warnings))


def single(text: str) -> Single:
    """Where one broker is named: tcp://host:port, or only host:port."""
    found = parse(text)
    if not isinstance(found, Single):
        raise complaint(text, 0, "one broker is named here, as in tcp://host:61616")
    return found


def _strange(text: str, at: int) -> UriError:
    scheme = re.search(r"(?<!//)\b([\w-]+)(:(?://)?)?$", text[:at])
    if scheme and (text[at] == "(" if scheme[2] else text[at : at + 2] in (":/", ":(")):
        return _no_scheme(text, scheme)
    if text[at] == ":":
        return complaint(text, at + 1, f"a port is 1 to {PORT_MAX}")
    return complaint(text, at, f"{text[at]!r} cannot stand here")


def _no_scheme(text: str, found: re.Match[str]) -> UriError:
    meant = difflib.get_close_matches(found[1].lower(), SCHEMES, 1)
    hint = f"; did you mean {meant[0]}:?" if meant else f"; there are {', '.join(SCHEMES)}"
    return complaint(text, found.start(), f"{found[1]}: is not known{hint}")


def _unexpected(text: str, error: UnexpectedToken) -> UriError:
    at, shown = len(text), "the end"
    if error.token.type != "$END":
        at = error.token.start_pos or 0
        shown = f"{str(error.token)!r:.40}"
        if text[at] == ":":
            return _strange(text, at)
    before = text[:at]
    if error.token.type == "RPAR" and re.search(r"[(,]\s*$", before):
        what = "this list is empty" if before.rstrip().endswith("(") else "a member is missing"
        return complaint(text, at, what)
    accepted = set(error.accepts or error.expected)
    words = ["a broker or a list"] if accepted & A_MEMBER else []
    words += sorted(WORDS.get(each, each.lower()) for each in accepted - A_MEMBER)
    return complaint(text, at, f"expected {' or '.join(words)}, found {shown}")


def _tokens(node: Tree[Token], kind: str) -> Iterator[Token]:
    return (each for each in node.children if isinstance(each, Token) and each.type == kind)


class _Reading:
    """One text on its way to a uri."""

    def __init__(self, text: str, is_ours: bool) -> None:
        self.text, self._is_ours = text, is_ours
        self.warnings: list[str] = []

    def complain(self, token: Token, what: str, offset: int = 0) -> UriError:
        return complaint(self.text, (token.start_pos or 0) + offset, what)

    def uri(self, start: Tree[Token]) -> Uri:
        if start.data == "shared":
            return self._shared(next(_tokens(start, "SHARED")))
        [node] = start.children
        assert isinstance(node, Tree)
        if node.data == "found":
            return self._found(node)
        return self._member(node, 0, is_in_failover=False)

    def _member(self, node: Tree[Token], depth: int, *, is_in_failover: bool) -> Member:
        if node.data == "single":
            return self._single(node)
        return self._members(node, depth, is_in_failover)

    def _shared(self, token: Token) -> Shared:
        return Shared(self._name(token, str(token)[len("shm://") :], len("shm://")))

    def _name(self, token: Token, text: str, offset: int) -> str:
        name = unquote(text)
        if not is_name(name):
            raise self.complain(token, "a vhost has 1 to 255 bytes and no slash", offset)
        return name

    def _single(self, node: Tree[Token]) -> Single:
        [host] = _tokens(node, "HOST")
        port = PORT
        for token in _tokens(node, "PORT"):
            if not re.fullmatch(r":\d{1,5}", token, re.A) or not 0 < int(token[1:]) <= PORT_MAX:
                raise self.complain(token, f"a port is 1 to {PORT_MAX}, not {token[1:]!r}", 1)
            port = int(token[1:])
        vhost = ROOT
        for token in _tokens(node, "VHOST"):
            if token != "/" and unquote(token[1:]) != ROOT:
                vhost = self._name(token, token[1:], 1)
        values = self._values(node, OF_SINGLE)
        try:
            heartbeat(dict(values))
        except Contradiction as error:
            raise self.complain(host, str(error)) from None
        return Single(self._host(host), port, vhost, values)

    def _host(self, token: Token) -> str:
        host = str(token).lower()
        if host.startswith("["):
            host = host[1:-1]
            if not re.fullmatch(r"[0-9a-f:.]*:[0-9a-f:.]*(%[\w.-]+)?", host, re.A):
                raise self.complain(token, "an address in brackets is IPv6, as in [::1]")
        elif host != "*" and not re.fullmatch(r"[\w.-]+", host):
            raise self.complain(token, f"{host!r} is no host")
        return host

    def _members(self, node: Tree[Token], depth: int, is_in_failover: bool) -> Members:
        listing = node.children[0]
        assert isinstance(listing, Tree)
        scheme_token, *nodes = listing.children
        assert isinstance(scheme_token, Token)
        if depth >= DEPTH_MAX:
            raise self.complain(scheme_token, f"lists are nested more than {DEPTH_MAX} deep")
        scheme = re.split(r":(?=/|\s*\()", scheme_token.lower())[0]
        if is_in_failover and scheme.startswith(STATIC):
            raise self.complain(
                scheme_token, "failover: has one link, and static: one to each of its members"
            )
        holds = is_in_failover or scheme != STATIC
        found = [
            self._member(each, depth + 1, is_in_failover=holds)
            for each in nodes
            if isinstance(each, Tree)
        ]
        members = self._without_repeated(found)
        if scheme == MASTERSLAVE_SCHEME and len(members) < 2:
            raise self.complain(scheme_token, "masterslave: has at least two members")
        return self._listed(scheme, members, node, is_in_failover)

    def _listed(
        self, scheme: str, members: tuple[Member, ...], node: Tree[Token], is_inside: bool
    ) -> Members:
        self._check_preferred(node, members)
        if scheme == "static:failover":
            values = self._values(node, OF_BOTH)
            inner = tuple(each for each in values if each[0] in OF_FAILOVER or _is_nested(each[0]))
            outer = tuple(each for each in values if each[0] in OF_STATIC)
            return Members(STATIC, (Members(FAILOVER, members, inner),), outer)
        if scheme == MASTERSLAVE_SCHEME:
            table = {} if is_inside else OF_BOTH
            return Members(scheme, members, self._values(node, table, fixed=MASTERSLAVE))
        if scheme == STATIC:
            return Members(scheme, members, self._values(node, OF_STATIC))
        return Members(scheme, members, self._values(node, OF_INNER if is_inside else OF_FAILOVER))

    def _check_preferred(self, node: Tree[Token], members: tuple[Member, ...]) -> None:
        """`priority-uris` names members of the list."""
        peers = {name for each in members for one in singles(each) for name in (one.peer, one.host)}
        for token, value in _parameters(node):
            if kebab(token) == "priority-uris":
                for each in value.split(","):
                    if each.removeprefix("tcp://") not in peers:
                        raise self.complain(token, f"{each} is no member of this list")

    def _without_repeated(self, members: list[Member]) -> tuple[Member, ...]:
        kept: dict[object, Member] = {}
        for each in members:
            place = each.place if isinstance(each, Single) else each
            if place in kept:
                self.warnings.append(f"{each} stands twice in one list: the second is dropped")
            kept.setdefault(place, each)
        return tuple(kept.values())

    def _found(self, node: Tree[Token]) -> Found:
        [token] = _tokens(node, "DISCOVERY")
        inside = re.fullmatch(r"\w+:(?://)?(?:\((udp|registry):(.*)\)|(.*))", token, re.I)
        assert inside is not None
        if inside[3]:
            if _parameters(node):
                raise self.complain(token, "discovery: by a name has no parameters here")
            return Found("name", unquote(inside[3]))
        means, place = inside[1].lower(), unquote(inside[2])
        if means == "udp":
            group, _, port = place.removeprefix("//").rpartition(":")
            if not group or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
                raise self.complain(token, "multicast is named by group and port, as in "
                                    "udp://231.7.7.7:9876")  # fmt: skip
            return Found(means, f"{group}:{int(port)}", self._values(node, OF_UDP))
        return Found(means, place, self._values(node, OF_REGISTRY))

    def _values(
        self, node: Tree[Token], table: Table, fixed: Mapping[str, object] | None = None
    ) -> Values:
        found: dict[str, object] = {}
        for token, value in _parameters(node):
            try:
                name = self._parameter(token, table)
                if name in found:
                    raise self.complain(token, f"{name} is given twice")
                found[name] = self._value(token, name, value, table)
            except UriError:
                if self._is_ours:
                    raise
                continue
            if fixed and found[name] != fixed.get(name, found[name]):
                raise self.complain(token, f"masterslave: sets {name} itself")
            self._check_pauses(token, found)
        return tuple(found.items())

    def _value(self, token: Token, name: str, value: str, table: Table) -> object:
        option = table.get(name) or OF_SINGLE[name.removeprefix(NESTED)]
        try:
            return option.value_of(_number(option.kind, value))
        except ValueError as error:
            raise self.complain(token, f"{name} is {error}, not {value!r:.80}") from None

    def _check_pauses(self, token: Token, found: dict[str, object]) -> None:
        first, longest = (found.get(each) for each in PAUSES)
        if isinstance(first, float) and isinstance(longest, float) and longest < first:
            raise self.complain(token, f"{PAUSES[1]} is at least {PAUSES[0]}")

    def _parameter(self, token: Token, table: Table) -> str:
        """Its name here; nested.NAME is one of a single member."""
        name = kebab(unquote(token))
        is_nested = _is_nested(name) and bool(table.keys() & {"randomize", "back-off-multiplier"})
        known = OF_SINGLE if is_nested else table
        bare = name.removeprefix(NESTED) if is_nested else name
        if bare not in known and ALIASES.get(bare) in known:
            bare = ALIASES[bare]
        if bare not in known:
            others = [each for each in ALIASES if ALIASES[each] in known]
            meant = difflib.get_close_matches(bare, [*known, *others], 1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise self.complain(token, f"there is no parameter {name} here{hint}")
        return NESTED + bare if is_nested else bare


def _is_nested(name: str) -> bool:
    return name.startswith(NESTED)


def _parameters(node: Tree[Token]) -> list[tuple[Token, str]]:
    found = []
    for each in node.children:
        if isinstance(each, Tree) and each.data in ("wide", "narrow"):
            name, *values = each.children
            assert isinstance(name, Token)
            found.append((name, unquote(",".join(map(str, values)))))
    return found


def _number(kind: Kind, text: str) -> object:
    """What the text of a parameter is in TOML."""
    if kind.name in NUMBERS and re.fullmatch(r"-?\d{1,18}", text, re.A):
        return int(text)
    if kind.name == "factor" and re.fullmatch(r"\d{1,18}\.\d{1,18}", text, re.A):
        return float(text)
    return text
