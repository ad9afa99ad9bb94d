"""Requests and replies in the C interface."""

from __future__ import annotations

PUBLIC = """\
/* --- requests and replies --- */

/* A request that is on its way, or was answered. */
struct sb_asked {
    void *requester;
    sb_queue *replies;
    int64_t number;
    sb_message reply; /* taken from `replies` */
    const void *properties; /* of the reply */
    int64_t properties_length;
};
/* Publish a request and wait for its reply, in asked->reply.  SB_OK; SB_NO_REPLY if none came in
 * time; SB_INTERRUPTED: if asked->requester is set it is published, and sb_await_reply waits on.
 * Whatever the answer, call sb_asked_end afterwards. */
int64_t sb_request(sb_queue *queue, const sb_outgoing *request, sb_asked *asked,
                   int64_t timeout_ns);
int64_t sb_request_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, sb_asked *asked, int64_t timeout_ns);
/* The same in two steps, with other things to do in between. */
int64_t sb_ask(sb_queue *queue, const sb_outgoing *request, sb_asked *asked, int64_t timeout_ns);
int64_t sb_await_reply(sb_asked *asked, int64_t timeout_ns);
/* Acknowledge the reply, or forget the request. */
int64_t sb_asked_end(sb_asked *asked);
/* Reply to a request that was taken from this queue, before it is acknowledged.  SB_OK;
 * SB_REQUESTER_LEFT if nobody waits for it. */
int64_t sb_reply(sb_queue *queue, const sb_message *request, const sb_outgoing *reply,
                 int64_t timeout_ns);
int64_t sb_reply_with(sb_queue *queue, const sb_message *request, const void *body, int64_t length,
                      const void *properties, int64_t properties_length, int64_t timeout_ns);
"""

PRIVATE = """\
/* A reply to whoever waits at the queue of this name, here or at another node; its properties are
 * whole. */
int64_t sb_reply_to(sb_connection *connection, const char *name, const sb_outgoing *reply,
                    int64_t timeout_ns);
"""
