"""The part of shmbroker_private.h that is of replicas of single queues."""

from __future__ import annotations

QUEUE_REPLICAS = """\
/* --- replicas of single queues --- */

/* Make the queue of this name a replica: one with its slots and settings that is empty and begins
 * at this position takes its place.  `of`: what it follows, for whoever runs it. */
int64_t sb_replica_declare(sb_connection *connection, const char *name, int64_t position,
                           const void *of, int64_t length);
/* The file with the moment that is being shown, to be closed; -1: there is none, and it is not
 * made. */
int64_t sb_moment_open(sb_connection *connection, int64_t makes, int64_t *file);
"""
