"""The sink's part of shmbroker_private.h."""

from __future__ import annotations

SINK = """\
/* --- the sink: records of a stream go into queues, each once --- */

typedef struct sb_sink sb_sink;

/* What became of a buffer of records. */
typedef struct sb_poured {
    int64_t bytes;    /* of the buffer that were dealt with; go on behind them */
    int64_t answers;  /* one for each message in them */
    int64_t appended; /* so many are in a queue now */
    int64_t seen;     /* so many were there before, or known */
    int64_t refused;  /* so many are in no queue, and but for too many open ones known */
} sb_poured;

/* Pour a stream, named by 128 bits, that nobody else pours at the same time.  What nobody has
 * poured for so long is forgotten when there is need for its place; below 0: never.  `checks`: it
 * comes from whoever has published it, and message ids are compared; a link's are not, so that a
 * message may come back to where it was.  `counts`: each position comes, in any order.  Those that
 * are left out stay open, 1000 of them; then what would leave out more is answered
 * SB_TOO_MANY_OPEN, and is not known.  It goes to queues, or through one exchange: there, too many
 * end the call, and so does SB_UNCONFIRMED, for one that some queues may have and that was left out
 * since. */
int64_t sb_sink_open(sb_connection *connection, int64_t high, int64_t low, int64_t retention_ns,
                     int64_t checks, int64_t counts, sb_sink **sink);
/* Records that have this number of a queue go to this queue, or through this exchange; -1: records
 * of any queue.  Positions of all records that go to the same queue rise.  How far the stream is
 * there: the lowest position that is not known.  SB_IN_USE: another participant pours it there, and
 * is alive. */
int64_t sb_sink_to_queue(sb_sink *sink, int64_t number, sb_queue *queue);
int64_t sb_sink_to_exchange(sb_sink *sink, int64_t number, sb_exchange *exchange);
/* Each goes to the queue of this vhost that it says it is for (sb_target_of).  Only for who stops
 * at what is refused. */
int64_t sb_sink_to_node(sb_sink *sink);
/* The target of a message that goes to a queue of this name at another node. */
int64_t sb_target_of(const char *name, int64_t length);
/* The same of a message that goes there through the exchange of this name, to all queues that are
 * bound to it there. */
int64_t sb_target_of_exchange(const char *name, int64_t length);
/* The same of a reply to who waits at this temporary queue there; without that, it is dropped. */
int64_t sb_target_of_reply(const char *name, int64_t length);
/* Bind for the cluster, or undo that: what this takes goes to another node with this target, or
 * to a queue here if it is -1.  A user's binding is another one, even if all else is the same. */
int64_t sb_bind_own(sb_connection *connection, const sb_binding *binding, int64_t target,
                    int64_t removes);
typedef struct sb_own_change {
    sb_binding binding;
    int64_t target, removes;
    int64_t code; /* what sb_bind_own says */
} sb_own_change;
/* All of them, one after another.  Who searches for a route finds none or all of them done. */
int64_t sb_bind_own_all(sb_connection *connection, sb_own_change *changes, int64_t count);
/* Whose turn it is for messages of this queue: two words for each, the reference to its ring and
 * its target, 0 for the queue itself; bit i of `eligible` is the i-th.  None: the queue itself.
 * Others have turns with what one of their selectors takes: `length` bytes, of each a word with its
 * member and its length, and its program.  The reference to the set, 0 none. */
int64_t sb_queue_balance(sb_queue *queue, const int64_t *members, int64_t count, int64_t eligible,
                         const void *selectors, int64_t length);
/* The set of a queue that was deleted; 0: those of all queues, which a former broker has left. */
int64_t sb_balances_forget(sb_connection *connection, int64_t set);
int64_t sb_sink_position(sb_sink *sink, int64_t number);
/* Of a stream of which each position comes: those that are open, in order, as many as there is room
 * for; how many there are.  And those from `first` on, below `end`, will not come. */
int64_t sb_sink_open_positions(sb_sink *sink, int64_t number, int64_t *positions, int64_t room);
int64_t sb_sink_give_up(sb_sink *sink, int64_t number, int64_t first, int64_t end);
/* Pour records of the journal's format, in the order of their positions.  An answer for each
 * message: its position (through an exchange: how many queues have it), SB_DUPLICATE (known
 * before), or why it was refused.  SB_OK: all; SB_FULL: the next one finds no room in time; or what
 * is wrong, and nothing of the next one has happened.  `later` is added to times of expiry. */
int64_t sb_sink_pour(sb_sink *sink, const void *records, int64_t bytes, int64_t later,
                     int64_t *answers, int64_t timeout_ns, sb_poured *told);
/* Records of a program, which counts from 0 in each buffer: the first one is at this position now,
 * the others behind it, and all are published now.  How many they are; SB_INVALID if something else
 * is among them. */
int64_t sb_records_number(void *records, int64_t bytes, int64_t first);
/* Each may come for the second time: it says so where it is delivered. */
int64_t sb_records_doubt(void *records, int64_t bytes);
/* The queue behind an exchange that had no room for a record, the last one; NULL: none had. */
sb_queue *sb_sink_full(const sb_sink *sink);
/* After SB_FULL, 1: the last one had no room in the arena, of which no bell tells. */
int64_t sb_sink_lacks_memory(const sb_sink *sink);
/* The queues that have had something of the stream since it was opened, as many as there is room
 * for; how many there are. */
int64_t sb_sink_queues(const sb_sink *sink, sb_queue **queues, int64_t room);
/* From now on pouring stops before a message that is refused, with the reason as its code and
 * `refused` 1: whoever pours it goes on behind its record once the sender has it safe.  Through an
 * exchange, one of its queues refuses it, and the others have it. */
void sb_sink_stop_at_refused(sb_sink *sink);
/* What it appends to queues has come over a network link, and says so: its target is SB_TRAVELLED,
 * which is no number of a queue. */
#define SB_TRAVELLED 2
void sb_sink_travels(sb_sink *sink);
/* From now on what it pours through an exchange has come from the message transfer agent of the
 * node `from` to the node `here`, each with 16 bytes: what was here before is dropped, and what
 * goes on says where it was. */
int64_t sb_sink_of_agent(sb_sink *sink, const void *here, const void *from);
/* The target of a binding by which an agent takes messages that go over so many agents at most.
 * `comes_back`: the other broker sends them to this one, too, where nobody has them. */
int64_t sb_target_of_agent(int64_t hops_max, int64_t comes_back);
/* Give a record of a queue of an agent back to whoever has published it; SB_NOT_FOUND: nobody is
 * to be told, or is there; SB_FULL. */
int64_t sb_record_return(sb_connection *connection, const void *record, int64_t bytes,
                         const char *exchange, const char *why);
/* A chooser (sb_pass) of what a broker elsewhere fetches: what came over no such link, and of each
 * `cycle` positions the one whose turn it is; the others are for other consumers. */
typedef struct sb_fetch {
    int64_t cycle, turn;
} sb_fetch;
int64_t sb_is_fetched(const sb_message *message, void *fetch);
/* All positions below this one are known from now on, whether messages had them or not. */
int64_t sb_sink_skip(sb_sink *sink, int64_t number, int64_t position);
/* The queue with the marks of streams in exchanges.  A message that is published there by a
 * transaction is confirmed when the marks of all queues are, as they stood before. */
int64_t sb_sink_marks(sb_connection *connection, sb_queue **opened);
/* The next who pours the stream goes on.  `forgets`: nobody will, it is forgotten at once.  Before
 * sb_connection_free. */
void sb_sink_close(sb_sink *sink, int64_t forgets);
"""
