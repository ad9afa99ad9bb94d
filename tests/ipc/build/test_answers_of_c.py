"""What C programs are answered: the code that the header says, and words about it."""

from __future__ import annotations

import mmap
import subprocess
from pathlib import Path

import pytest

import shmbroker
from tests.support.compiler import compile_program

BEGIN = """
#include <stdio.h>
#include <string.h>
#include "shmbroker.h"
sb_connection *connection;
sb_queue *queue;
sb_message message;
sb_outgoing outgoing;
void told(const char *what, int64_t code)
{
    printf("%s: %d %s\\n", what, (int)code, code < 0 ? sb_detail(code) : "");
}
int64_t published(const char *key, int64_t key_length, int64_t ttl_ns)
{
    memset(&outgoing, 0, sizeof outgoing);
    outgoing.body = "x";
    outgoing.length = 1;
    outgoing.key = key;
    outgoing.key_length = key_length;
    outgoing.ttl_ns = ttl_ns;
    return sb_publish_message(queue, &outgoing, 0);
}
int main(int count, char **argument)
{
    if (count < 2 || sb_connect(argument[1], NULL, &connection) < 0 ||
        sb_declare_queue(connection, "q", 256) < 0 || sb_open_queue(connection, "q", &queue) < 0)
        return 1;
"""

SIZES = """
    static char key[65536];
    int64_t huge = INT64_C(1) << 40;
    sb_loan loan;
    told("a key", published(key, sizeof key, 0));
    told("a body", sb_publish(queue, key, huge, 0));
    told("a body at once", sb_publish_now(queue, key, huge));
    told("bodies", sb_publish_many(queue, key, &huge, 1, 0));
    memset(&outgoing, 0, sizeof outgoing);
    outgoing.length = huge;
    told("a loan", sb_loan_take(queue, &outgoing, &loan));
    outgoing.length = 1;
    outgoing.body = outgoing.properties = key;
    outgoing.properties_length = 65536;
    told("properties", sb_publish_message(queue, &outgoing, 0));
    printf("%d\\n", (int)(sb_published(queue)));
"""

LOANS = """
    sb_loan loans[65];
    int64_t code = 0;
    memset(&outgoing, 0, sizeof outgoing);
    outgoing.length = 8;
    for (count = 0; count < 65 && code == SB_OK; count++)
        code = sb_loan_take(queue, &outgoing, &loans[count]);
    told("one more loan", code);
    printf("%s\\n", sb_strerror(code));
    told("publishing", sb_publish(queue, "x", 1, SB_FOREVER));
    told("taking", sb_get(queue, &message, SB_FOREVER));
    told("a loan", sb_loan_publish(queue, &loans[0], 0));
    told("publishing", sb_publish(queue, "x", 1, 0));
    while (--count > 1)
        sb_loan_drop(queue, &loans[count - 1]);
"""

REPLIES = """
    sb_asked asked;
    memset(&outgoing, 0, sizeof outgoing);
    outgoing.body = "r";
    outgoing.length = 1;
    for (count = 0; count < 3; count++) {
        if (sb_ask(queue, &outgoing, &asked, 0) < 0 || sb_get(queue, &message, 0) < 0)
            return 1;
        told("replying", sb_reply(queue, &message, &outgoing, 0));
        told("again", sb_reply_with(queue, &message, "s", 1, NULL, 0, 0));
        sb_ack(queue, &message);
        told("reply", sb_await_reply(&asked, SB_FOREVER));
        sb_asked_end(&asked);
    }
"""

END = """
    sb_connection_free(connection);
    return 0;
}
"""


def answers(body: str, folder: Path, vhost: str) -> list[str]:
    """What a program with this in the middle prints."""
    source = folder / "answers.c"
    source.write_text(BEGIN + body + END)
    program = compile_program(source, folder / "answers")
    return subprocess.check_output([program, vhost], text=True, timeout=120).splitlines()


def test_what_is_too_large(tmp_path: Path, vhost: str) -> None:
    quarter = answers(SIZES, tmp_path, vhost)
    body = quarter[1].partition(": ")[2]
    assert body.startswith("-6 queue 'q': a message has at most ")
    assert body.endswith(" bytes with all that belongs to it: a quarter of the arena")
    assert quarter == [
        "a key: -6 a key has at most 65535 bytes, not 65536",
        f"a body: {body}",
        f"a body at once: {body}",
        f"bodies: {body}",
        f"a loan: {body}",
        "properties: -6 the properties of a message have at most 65535 bytes, not 65536",
        "0",
    ]


def test_all_places_of_a_queue_are_on_loan(tmp_path: Path, vhost: str) -> None:
    full = (
        "-21 queue 'q': 64 threads and loans of this process are in it, and more cannot be: "
        "publish or drop some loans first"
    )
    assert answers(LOANS, tmp_path, vhost) == [
        f"one more loan: {full}",
        "too many loans and threads in one queue: publish or drop some loans first",
        f"publishing: {full}",
        f"taking: {full}",
        "a loan: 0 ",
        "publishing: 1 ",
    ]


def test_a_reply_is_answered_ok(tmp_path: Path, vhost: str) -> None:
    assert answers(REPLIES, tmp_path, vhost) == 3 * ["replying: 0 ", "again: 0 ", "reply: 0 "]


def test_a_body_of_2_gib_is_too_large_in_python(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    huge = mmap.mmap(-1, 1 << 31)  # which nobody reads: it takes no memory
    with pytest.raises(shmbroker.MessageTooLarge):
        queue.publish(huge)
    with pytest.raises(shmbroker.MessageTooLarge):
        queue.publish(huge, key="k")
