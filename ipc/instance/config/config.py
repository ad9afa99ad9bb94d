"""The configuration of an instance: shmbroker.toml in its folder.

A key that nobody knows is an error, because a misspelt option would silently be another one.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.config.kind import SECRET, is_unicode
from shmbroker.ipc.instance.config.option import (
    LISTED_TABLE,
    NAMED_TABLES,
    NETBRIDGE_TABLES,
    OPTIONS,
    PARTS_OF_HA,
    RENEW_MIN,
    STALL_LIMIT_MIN,
    Option,
    is_of_netbridge,
)
from shmbroker.ipc.instance.config.secret import Secret
from shmbroker.ipc.instance.config.sources import Layers, NoSuchVariable, layered
from shmbroker.ipc.settings.setting import Replicate

FILE = "shmbroker.toml"
FROM: Final = "from"
"""A table of the file: `file` is another one, which has what does not stand here."""

ONE_LOG: Final = ": one log holds bodies and bindings; its folder is store.journal"
GONE: Final = {
    "store.bindings-directory": ONE_LOG,
    "store.large-messages-directory": ONE_LOG,
}
"""Options of other brokers that have no counterpart, and why."""

Given = dict[str, object]
"""Values as they stand in TOML, by key: `ha.role`."""


class ConfigError(InvalidArgument):
    """The configuration of an instance is wrong; the message says where."""


@dataclass(frozen=True, slots=True)
class Sql:
    """The lease in a database that says who is live."""

    url: Secret
    password: Secret
    table: str
    renew: float
    expiration: float


@dataclass(frozen=True, slots=True)
class SpoolConfig:
    """The histograms that a live writes."""

    path: str
    interval: float
    rotate: float
    size: int
    keep: int
    parquet: bool


@dataclass(frozen=True, slots=True)
class Config:
    folder: Path
    name: str
    vhost: str
    network_vhost: str
    arena: int
    group: str
    queues: tuple[str, ...]
    """That a live makes if they are not there."""
    store: Path
    journal: Path | None
    pages: Path | None
    segment: int
    lock: str
    sql: Sql
    log: Path
    spool: SpoolConfig
    policy: str
    role: str
    members: tuple[tuple[str, str], ...]
    """Names and uris."""
    failover_on_shutdown: bool
    allow_failback: bool
    restart_backup: bool
    wait_for_activation: bool
    on_promote: tuple[tuple[str, ...], ...]
    on_promote_failure: str
    on_promote_timeout: float
    queue_replication: bool
    """Single queues may follow those of other brokers (netbridge/queue_replica/)."""
    replicate: Replicate
    """Of queues and exchanges that do not say it (ipc/broker/restoring.py)."""
    replica_timeout: float
    stall_limit: float
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of queues, by pattern: [queues."orders.#"], read by netbridge/config/."""

    def with_reloaded(self, new: Config) -> Config:
        """Of the new one what a running broker takes."""
        return replace(
            self,
            on_promote=new.on_promote,
            on_promote_failure=new.on_promote_failure,
            on_promote_timeout=new.on_promote_timeout,
            replica_timeout=new.replica_timeout,
            settings=new.settings,
        )


def flattened(tables: Mapping[str, Any], place: Path) -> Iterator[tuple[str, object]]:
    for table, values in tables.items():
        if table == LISTED_TABLE and isinstance(values, list):
            values = {str(number): each for number, each in enumerate(values, 1)}
        if not isinstance(values, dict):
            raise ConfigError(f"{place}: {table} stands outside of any table")
        _check_table(table, place)
        for name, value in values.items():
            if table == "ha" and name in PARTS_OF_HA and isinstance(value, dict):
                yield from ((f"ha.{name}.{key}", each) for key, each in value.items())
            elif table not in NAMED_TABLES:
                yield f"{table}.{name}", value
            elif isinstance(value, dict):
                yield from ((f"{table}.{name}.{key}", each) for key, each in value.items())
            else:
                raise ConfigError(f"{place}: {name} stands in [{table}], not in [{table}.NAME]")


def read(folder: Path) -> Given:
    """What is configured, by key."""
    place = folder / FILE
    tables = _tables(place)
    if tables is None:
        raise ConfigError(
            f"{folder} is no instance: it has no {FILE}; make one with shmbroker create {folder}"
        )
    other = _other(tables)
    own = dict(flattened(tables, place))
    return own if other is None else read_file(other) | own


def read_file(place: Path) -> Given:
    """What stands in a file, by key."""
    tables = _tables(place)
    if tables is None:
        raise ConfigError(f"there is no {place}")
    return dict(flattened(tables, place))


def empty_tables(folder: Path) -> Iterator[str]:
    """[console], [ha.scale-down] and those with a name in which nothing stands: they are meant."""
    with suppress(ConfigError):  # it is told where it is read
        for table, values in (_tables(place_of(folder)) or {}).items():
            if table == "console" and values == {}:
                yield table
            elif isinstance(values, dict) and (table in NAMED_TABLES or table == "ha"):
                yield from (f"{table}.{name}" for name, each in values.items() if each == {})


def place_of(folder: Path) -> Path:
    """The file where people look what is wrong."""
    place = folder / FILE
    with suppress(ConfigError):
        return _other(_tables(place) or {}) or place
    return place


def _other(tables: dict[str, Any]) -> Path | None:
    """Takes the table out."""
    named = tables.pop(FROM, None)
    is_named = isinstance(named, dict) and isinstance(named.get("file"), str)
    return Path(named["file"]) if is_named else None


def _tables(place: Path) -> dict[str, Any] | None:
    """None: there is no such file."""
    try:
        with place.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(told(error)) from None
    except RecursionError:
        raise ConfigError(f"{place}: it is nested too deeply") from None
    except ValueError as error:  # no TOML, no UTF-8, a number of thousands of digits
        raise ConfigError(f"{place}: {error}") from None


def layers(
    folder: Path,
    options: Iterable[Option] = OPTIONS,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> Layers:
    """The file, the environment and flags; `options`: those that a variable may name."""
    try:
        return layered(read(folder), options, environment, flags or {}, FILE)
    except NoSuchVariable as error:
        raise ConfigError(f"{place_of(folder)}: {error}") from None


def configured(folder: Path, given: Given) -> Config:
    """What is given, and the defaults of the rest, checked; without what netbridge reads."""
    folder = folder.absolute()
    place = place_of(folder)
    known = {option.key: option for option in OPTIONS}
    for key in given:
        if is_of_netbridge(key):
            continue
        if key not in known:
            _check_table(key.partition(".")[0], place)
            meant = difflib.get_close_matches(key, known, 1)
            hint = GONE.get(key) or (f"; did you mean {meant[0]}?" if meant else "")
            raise ConfigError(f"{place}: there is no option {key}{hint}")
    values = {key: _value(option, given, place) for key, option in known.items()}
    limit: float = values["ha.stall-limit"]
    if 0 < limit < STALL_LIMIT_MIN:
        raise ConfigError(
            f"{place}: ha.stall-limit is 0s (never) or at least 250ms, not {limit * 1000:g}ms: "
            "a live that is merely busy must not be killed"
        )
    _check_policy(given, values, place)
    sql = Sql(**_table("sql", values))
    _check_lease(sql, place)
    if values["store.lock"] == "sql" and not sql.url.content:
        raise ConfigError(
            f'{place}: store.lock is "sql", and sql.url does not say which database, as in '
            '"postgresql://broker@db.example/broker"'
        )
    return Config(
        folder=folder,
        name=values["instance.name"],
        vhost=values["instance.vhost"],
        network_vhost=values["instance.network-vhost"],
        arena=values["instance.arena"],
        group=values["instance.group"],
        queues=values["instance.queues"],
        store=folder / values["store.path"],
        journal=folder / values["store.journal"] if values["store.journal"] else None,
        pages=folder / values["store.pages"] if values["store.pages"] else None,
        segment=values["store.segment"],
        lock=values["store.lock"],
        sql=sql,
        log=folder / values["log.path"],
        spool=_spool(_table("spool", values), place),
        **_table("ha", values),
    )


def _check_table(table: str, place: Path) -> None:
    known = {each.table for each in OPTIONS} | set(NETBRIDGE_TABLES)
    if table not in known:
        meant = difflib.get_close_matches(table, sorted(known), 1)
        hint = f"; did you mean [{meant[0]}]?" if meant else ""
        raise ConfigError(f"{place}: there is no table [{table}]{hint}")


def _table(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a table of the file has, by names of ours."""
    of_it = (option for option in OPTIONS if option.table == name)
    return {option.name.replace("-", "_"): values[option.key] for option in of_it}


def _spool(values: dict[str, Any], place: Path) -> SpoolConfig:
    for name in ("interval", "rotate", "size", "keep"):
        if not values[name]:
            raise ConfigError(f"{place}: spool.{name} is more than nothing")
    return SpoolConfig(**values)


def _check_policy(given: Given, values: Mapping[str, Any], place: Path) -> None:
    policy = values["ha.policy"]
    if policy == "replication" and "ha.failover-on-shutdown" in given:
        raise ConfigError(
            f"{place}: ha.failover-on-shutdown does not go with replication: a stop in good order "
            "always hands over there"
        )
    if policy != "replication" and "ha.replicate" in given:
        raise ConfigError(
            f'{place}: ha.replicate is for ha.policy = "replication": with "{policy}" there is no '
            "copy of any queue"
        )
    if policy == "pair" and values["ha.role"] != "live":
        raise ConfigError(
            f'{place}: ha.role does not go with ha.policy = "pair", which has ha.pair.is-primary '
            "and ha.pair.is-backup"
        )
    if values["ha.role"] == "auto" and policy != "replication":
        raise ConfigError(f'{place}: ha.role is "auto" only with ha.policy = "replication"')
    if values["ha.role"] == "auto" and not values["ha.members"]:
        raise ConfigError(
            f'{place}: ha.role is "auto", and ha.members does not say who is preferred'
        )


def _check_lease(sql: Sql, place: Path) -> None:
    if sql.renew < RENEW_MIN:
        raise ConfigError(f"{place}: sql.renew is at least {RENEW_MIN * 1000:g}ms")
    if 3 * round(sql.renew * 1e9) > round(sql.expiration * 1e9):
        raise ConfigError(
            f"{place}: sql.renew is at most a third of sql.expiration, so that one that fails may "
            f"be tried again; {sql.renew:g}s is more than a third of {sql.expiration:g}s"
        )


def _value(option: Option, given: Given, place: Path) -> Any:
    value = given.get(option.key, option.default)
    try:
        return option.value_of(value)
    except ValueError as error:
        if option.kind is SECRET:
            raise ConfigError(f"{place}: {option.key} is {error}") from None
        raise ConfigError(f"{place}: {option.key} is {error}, not {value!r:.200}") from None


def load(folder: Path) -> Config:
    """The configuration of the instance in a folder."""
    return configured(folder, layers(folder).values)


def toml_of(given: Given) -> str:
    """A file with these values; the others stand there with their defaults, as comments."""
    lines: list[str] = []
    table = ""
    for option in OPTIONS:
        if option.table != table:
            table = option.table
            lines += ["", f"[{table}]"]
        is_given = option.key in given
        value = given.get(option.key, option.default)
        shown = toml_value(value)
        lines.append(f"# {option.help}")
        lines.append(f"{'' if is_given else '# '}{option.name} = {shown}")
    for key, value in sorted(given.items()):
        root, *names, name = key.split(".")
        if is_of_netbridge(key):
            header = f"[{'.'.join([root, *(['.'.join(names)] if names else [])])}]"
            if names and not re.fullmatch(r"[\w-]+", names[0] if len(names) == 1 else "", re.A):
                header = f"[{root}.{toml_value('.'.join(names))}]"
            lines += [*([] if header in lines else ["", header]), f"{name} = {toml_value(value)}"]
    return "\n".join(["# An instance of shmbroker; see docs/durability.md.", *lines, ""])


def toml_value(value: object) -> str:
    """JSON's text, numbers, booleans and lists of text are TOML's, unless it is in ASCII: TOML has
    no pairs of surrogates.  Its objects are not.  ConfigError: no file can have it."""
    if isinstance(value, Mapping):
        pairs = (f"{_key(each)} = {toml_value(value[each])}" for each in value)
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if not is_unicode(text):
        raise ConfigError(f"{value!r:.200} is no UTF-8, as all that stands in a file of TOML")
    return text


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.A) else toml_value(name)
