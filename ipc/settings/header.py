"""Settings of queues in the C interface."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import get_args

from shmbroker.core import layout
from shmbroker.ipc.settings.setting import REPLICATE, SETTINGS, Kind

NEWLINE = "\n"


def _fields() -> str:
    lines = []
    for each in SETTINGS:
        kind = "const char *" if each.kind == "queue" else "int64_t "
        comment = textwrap.wrap(each.help.replace("none:", "SB_UNLIMITED:"), 90)
        lines.append(f"    /* {f'{NEWLINE}     * '.join(comment)} */")
        lines.append(f"    {kind}{each.field};")
    return "\n".join(lines) + "\n"


def _flag(value: bool) -> str:
    return str(value).lower()


def _texts(choices: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in choices) or "NULL"


def table() -> str:
    """settings_table.h: each setting, for ipc/catalog/settings.c."""
    places = "".join(
        f'    {{"{each.name}", SB_SET_{each.name.upper()}, {each.at},\n'
        f"     offsetof(sb_settings, {each.field}), INT64_C({each.most}), {each.least},\n"
        f"     INT64_C({each.default_number}), {_flag(each.kind == 'queue')}, "
        f"{_flag(each.is_none_at_0)}, KIND_{each.kind.upper()},\n"
        f"     {{{_texts(each.choices)}}}}},\n"
        for each in SETTINGS
    )
    kinds = ", ".join(f"KIND_{each.upper()}" for each in get_args(Kind))
    return f"""\
/* The settings of a queue, from the table in ipc/settings/setting.py.  Generated: do not edit. */

static const struct place {{
    const char *name;
    int64_t set;     /* its bit */
    int64_t at;      /* in the page */
    size_t given_at; /* in sb_settings */
    int64_t most, least, otherwise;
    bool is_name, is_none_at_0;
    enum {{
        KIND_NONE, {kinds},
    }} kind;
    const char *choices[4];
}} PLACES[] = {{
{places}}};
"""


PUBLIC = f"""\
/* --- settings --- */

/* How a queue treats its messages.  All zero: as sb_declare_queue makes it.  Times in ns, a rate
 * as ns for one message, factors in millionths; choices are SB_BLOCK, ..., SB_NOTIFY, ...,
 * SB_REPLICATE_ALL, ... */
struct sb_settings {{
{_fields()}    const void *given;        /* for people: what was asked for, as a MessagePack map */
    int64_t given_length;
    int64_t set; /* bits SB_SET_*: given though it is 0; what is not 0 is given anyway */
}};

/* Settings of queues that are declared from now on and whose names match the pattern (words
 * between dots, * is one word, # any number), as far as their declaration does not give them.  The
 * most specific pattern wins.  Once more for the same pattern: instead of what it had.  SB_OK. */
int64_t sb_settings_put(sb_connection *connection, const char *pattern,
                        const sb_settings *settings);
/* SB_OK; SB_NOT_FOUND. */
int64_t sb_settings_remove(sb_connection *connection, const char *pattern);
/* What was given when the queue was declared, a MessagePack map: its length. */
int64_t sb_settings_given(sb_queue *queue, void *buffer, int64_t capacity);
/* One setting of a queue: SB_BLOCK, ...; 1 or 0; 1 or 0. */
int64_t sb_when_full(sb_queue *queue);
int64_t sb_is_non_destructive(sb_queue *queue);
int64_t sb_is_durable(sb_queue *queue);
/* What another member of a replicated node has of a queue when it takes over: SB_REPLICATE_ALL,
 * ...; SB_REPLICATE_NONE also where there is no other member. */
int64_t sb_replicate(sb_queue *queue);
"""


def enumerators() -> list[str]:
    """What settings are set to, and the bits of sb_settings.set."""
    numbers = {"UNLIMITED": -1, "BLOCK": layout.BLOCK, "FAIL": layout.FAIL}
    numbers |= {"DROP_OLDEST": layout.DROP_OLDEST, "PAGE": layout.PAGE}
    numbers |= {f"REPLICATE_{name.upper()}": each for name, each in REPLICATE.items()}
    numbers |= {"NOTIFY": layout.NOTIFY, "DISCONNECT": layout.DISCONNECT}
    numbers |= {f"SET_{each.name.upper()}": each.bit for each in SETTINGS}
    return [f"    SB_{name} = {value}," for name, value in numbers.items()]
