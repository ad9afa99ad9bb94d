"""Selectors in the C interface."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.base.structure import Field, Structure

SUBJECT: Final = Structure(
    "sb_subject",
    "What a selector looks at.",
    "SUBJECT_BYTES",
    (
        Field("const void *key", "SUBJECT_KEY"),
        Field("int64_t key_length", "SUBJECT_KEY_LENGTH"),
        Field(
            "const void *properties",
            "SUBJECT_PROPERTIES",
            "a MessagePack map with text keys, or nothing",
        ),
        Field("int64_t properties_length", "SUBJECT_PROPERTIES_LENGTH"),
        Field("int64_t body_length", "SUBJECT_BODY_LENGTH"),
        Field("int64_t published_ns", "SUBJECT_PUBLISHED", "since the epoch, 0: unknown"),
        Field("int64_t expiry_ns", "SUBJECT_EXPIRY", "since the epoch, 0: never"),
        Field("int64_t priority", "SUBJECT_PRIORITY"),
        Field("int64_t deliveries", "SUBJECT_DELIVERIES", "before this one"),
    ),
)

PUBLIC = f"""\
/* --- selectors ---
 * A program is what shmbroker.Selector of Python compiles a text to.  It must lie in memory that
 * nobody else changes; a message may change while it is looked at. */

{SUBJECT.text()}
/* What is selected from a queue; zero but for the program, which sb_selector_check accepts. */
struct sb_selection {{
    const void *program;
    int64_t bytes;
    int64_t position;  /* nothing below matches, */
    int64_t returned;  /* while so many messages have come back, */
    int64_t looked_ns; /* since it was last looked at from the first one on */
    const void *text;  /* what the program was made of, for other nodes of a cluster; or NULL */
    int64_t text_length;
    int64_t told; /* it was, of this queue */
}};

/* SB_OK, or SB_INVALID: only what was checked may be run. */
int64_t sb_selector_check(const void *program, int64_t bytes);
/* 1 if the message is selected; 0 if not, or if that is unknown. */
int64_t sb_selector_matches(const void *program, int64_t bytes, const sb_subject *subject);
/* How many of them are selected. */
int64_t sb_selector_count(const void *program, int64_t bytes, const sb_subject *subjects,
                          int64_t count);
/* What a selector sees of a message that was taken or looked at. */
int64_t sb_subject_of(const sb_message *message, sb_subject *subject);
"""
