"""Transactions in the C interface."""

from __future__ import annotations

PUBLIC = """\
/* --- transactions ---
 * Nothing of one is visible before sb_transaction_commit.  After a commit or rollback every call
 * answers SB_ENDED. */

int64_t sb_transaction_begin(sb_connection *connection, sb_transaction **transaction);
/* Publish at commit.  The message is copied now, and where it goes is decided now.  SB_OK. */
int64_t sb_transaction_publish(sb_transaction *transaction, sb_queue *queue,
                               const sb_outgoing *message);
/* The same through an exchange: how many queues it will go to. */
int64_t sb_transaction_route(sb_transaction *transaction, sb_exchange *exchange,
                             const sb_outgoing *message);
/* Acknowledge at commit; on rollback it is given back.  The message is the transaction's from now
 * on.  SB_OK; SB_REVOKED if it was not ours. */
int64_t sb_transaction_ack(sb_transaction *transaction, sb_queue *queue, sb_message *message);
/* SB_OK: all of it has happened.  SB_FULL (there was no room in time, or none now in a queue with
 * SB_FAIL), SB_REVOKED (a message is no longer ours), SB_NOT_FOUND (a queue was deleted): nothing
 * has happened; try again, or roll back.
 * SB_UNFINISHED: it is committed, and a queue that had room is full again: call again, until it
 * says SB_OK; other calls of this connection finish it as well. */
int64_t sb_transaction_commit(sb_transaction *transaction, int64_t timeout_ns);
/* Wait until all of a transaction that is committed has this level in its durable queues; below 0:
 * the effective one.  SB_CONFIRM_*: the level that it has, SB_CONFIRM_SHM at once if it has no such
 * queue.  SB_UNCONFIRMED: not in time; ask again. */
int64_t sb_transaction_confirm(sb_transaction *transaction, int64_t level, int64_t timeout_ns);
int64_t sb_transaction_rollback(sb_transaction *transaction);
/* How many operations it has; at most 1,000, one for each queue that a message goes to. */
int64_t sb_transaction_operations(sb_transaction *transaction);
/* Rolls back if it was not committed.  Before sb_connection_free. */
void sb_transaction_free(sb_transaction *transaction);
"""

PRIVATE = """\
/* The id of the message that was added last, if it is to be delivered later; else 0. */
int64_t sb_transaction_scheduled(sb_transaction *transaction);
/* After SB_FULL: 1 if the queue that is full has SB_FAIL, so that a commit does not wait for it. */
int64_t sb_transaction_refused(sb_transaction *transaction);
/* sb_transaction_rollback; what it was to acknowledge was not delivered by that. */
int64_t sb_transaction_undo(sb_transaction *transaction);

/* Before one on durable queues is decided. */
void sb_commit_gate_wait(sb_connection *connection);
/* Until those up to this number have this level, SB_CONFIRM_*; below 0: the effective one. */
int64_t sb_commit_gate_await(sb_connection *connection, int64_t stamp, int64_t level,
                             int64_t timeout_ns);
/* See something while no transaction is half way; `is_durable`: and all of those on durable queues
 * are in the journal.  SB_EMPTY: one was half way all the time, as it waits for room, or stands
 * still. */
int64_t sb_commit_any_moment(sb_connection *connection, int64_t is_durable,
                             int64_t (*see)(void *), void *context);
"""
