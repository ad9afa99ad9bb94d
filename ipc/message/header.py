"""Messages in the C interface: what is published, and what was taken."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.base.structure import Field, Structure

MESSAGE: Final = Structure(
    "sb_message",
    "A message that was taken or looked at.  Programs read `position`, `body` and `length`; the\n"
    " * other fields are for the calls that get the message.",
    "MESSAGE_BYTES",
    (
        Field("int64_t position", "MESSAGE_POSITION", "in its queue"),
        Field("int64_t word", "MESSAGE_WORD"),
        Field("const void *body", "MESSAGE_BODY", "valid until acknowledged or given back"),
        Field("int64_t length", "MESSAGE_LENGTH", "of the body, in bytes"),
        Field("const void *chunk", "MESSAGE_CHUNK"),
        Field("int64_t shape", "MESSAGE_SHAPE"),
        Field("int64_t mark", "MESSAGE_MARK"),
        Field("int64_t offset", "MESSAGE_OFFSET"),
    ),
)

OUTGOING: Final = Structure(
    "sb_outgoing",
    "A message to publish.  All but `body` and `length` may be 0.",
    "OUTGOING_BYTES",
    (
        Field("const void *body", "OUTGOING_BODY"),
        Field("int64_t length", "OUTGOING_LENGTH"),
        Field("const void *key", "OUTGOING_KEY"),
        Field("int64_t key_length", "OUTGOING_KEY_LENGTH"),
        Field("const void *properties", "OUTGOING_PROPERTIES", "a MessagePack map with text keys"),
        Field("int64_t properties_length", "OUTGOING_PROPERTIES_LENGTH"),
        Field(
            "int64_t ttl_ns",
            "OUTGOING_TTL",
            "how long it may be delivered; 0: as the queue's settings say",
        ),
        Field(
            "int64_t priority",
            "OUTGOING_PRIORITY",
            "SB_PRIORITY(0) to SB_PRIORITY(9); 0: the default, which is 4",
        ),
        Field(
            "const void *id",
            "OUTGOING_ID",
            "of several messages with the same id, one counts: SB_DUPLICATE",
        ),
        Field(
            "int64_t id_length",
            "OUTGOING_ID_LENGTH",
            "1 to 255 bytes, 0: it has none; below 0: so many that are no text",
        ),
        Field(
            "int64_t producer",
            "OUTGOING_PRODUCER",
            "of sb_producer_open, instead of an id; 0: none",
        ),
        Field(
            "int64_t sequence",
            "OUTGOING_SEQUENCE",
            "its number: higher than those before, or SB_DUPLICATE",
        ),
        Field("int64_t delay_ns", "OUTGOING_DELAY", "deliver it after so long"),
        Field(
            "int64_t deliver_at_ns",
            "OUTGOING_DELIVER_AT",
            "or at this time of day, in ns since the epoch",
        ),
        Field(
            "int64_t target",
            "OUTGOING_TARGET",
            "for the broker: the queue of another node that it goes to; 0 in programs",
        ),
        Field(
            "int64_t deliveries",
            "OUTGOING_DELIVERIES",
            "for the broker: how often it may have been delivered elsewhere, or that it was here "
            "before; 0 in programs",
        ),
    ),
)

PUBLIC = f"""\
/* --- messages --- */

{OUTGOING.text()}
{MESSAGE.text()}
/* The key it was published with, and its length.  Valid as long as the body. */
const void *sb_message_key(const sb_message *message, int64_t *length);
/* Its properties, a MessagePack map; length 0 if it has none. */
const void *sb_message_properties(const sb_message *message, int64_t *length);
/* The id it was published with: length 0 if it has none, below 0 if the id is no text. */
const void *sb_message_id(const sb_message *message, int64_t *length);
/* When it was published: nanoseconds since the epoch. */
int64_t sb_message_published_at(const sb_message *message);
/* How often it was delivered before. */
int64_t sb_message_deliveries(const sb_message *message);

/* --- properties --- */

/* Set a property, or replace the one of its name, among those that are in the first `*length` bytes
 * of the buffer (0: none yet): `*length` is raised.  Names and texts are UTF-8, a name has 1 to 255
 * bytes; a text does not lie in the buffer itself.  Up to 65535 bytes in all.  SB_OK; SB_TOO_SMALL
 * if the buffer has no room, SB_TOO_LARGE if no message has, SB_INVALID: then nothing changes. */
int64_t sb_properties_set_text(void *buffer, int64_t capacity, int64_t *length, const char *name,
                               const char *text, int64_t text_length);
int64_t sb_properties_set_int(void *buffer, int64_t capacity, int64_t *length, const char *name,
                              int64_t value);
int64_t sb_properties_set_double(void *buffer, int64_t capacity, int64_t *length,
                                 const char *name, double value);
int64_t sb_properties_set_bool(void *buffer, int64_t capacity, int64_t *length, const char *name,
                               int64_t value);
/* Read a property among those of sb_message_properties, or of such a buffer.  SB_OK; SB_NOT_FOUND
 * if there is none of this name, or it is nil; SB_INVALID if it is of another kind (sb_detail says
 * of which) or these are no properties.  An integer may be read as a double. */
int64_t sb_properties_get_text(const void *properties, int64_t length, const char *name,
                               const char **text, int64_t *text_length);
int64_t sb_properties_get_int(const void *properties, int64_t length, const char *name,
                              int64_t *value);
int64_t sb_properties_get_double(const void *properties, int64_t length, const char *name,
                                 double *value);
int64_t sb_properties_get_bool(const void *properties, int64_t length, const char *name,
                               int64_t *value);
"""
