"""Scheduled messages in the C interface."""

from __future__ import annotations

PUBLIC = """\
/* --- scheduled messages: sb_outgoing.delay_ns, sb_outgoing.deliver_at_ns --- */

/* Where scheduled messages of a queue wait, for sb_browse and sb_statistics only; or NULL. */
int64_t sb_schedule(sb_queue *queue, sb_queue **schedule);
/* By the id that publishing answered.  1: it will not be delivered; 0: there is no such message any
 * more. */
int64_t sb_cancel_scheduled(sb_queue *queue, int64_t id);
"""
