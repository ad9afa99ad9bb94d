/* Threads that call in with handles of a queue which another process deletes and makes again.
 *
 *     deleting VHOST ROUNDS THREADS
 *
 * Each thread opens the queue, or takes the handle that all threads share, does one of many things
 * with it, and closes it.  Any answer of these calls is right that says what became of the queue;
 * what is wrong is another code, a crash, or mappings that are left. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmbroker.h>

#define NAME "contested"
#define SLOTS 16
#define MS 1000000

static sb_connection *connection;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sb_queue *shared;
static _Atomic int64_t *rounds_done; /* shared with the other process; -1: it is done */
static _Atomic int64_t calls, found_deleted;

static void fail(const char *what, int64_t code)
{
    fprintf(stderr, "%s: %lld %s: %s\n", what, (long long)code, sb_strerror(code), sb_detail(code));
    abort();
}

static void check(const char *what, int64_t code)
{
    atomic_fetch_add(&calls, 1);
    if (code == SB_NOT_FOUND)
        atomic_fetch_add(&found_deleted, 1);
    if (code < 0 && code != SB_NOT_FOUND && code != SB_EMPTY && code != SB_FULL &&
        code != SB_REVOKED && code != SB_GONE && code != SB_TOO_MANY_LOANS && code != SB_NO_GATE &&
        code != SB_NO_REPLY && code != SB_ENDED && code != SB_REQUESTER_LEFT &&
        code != SB_DUPLICATE)
        fail(what, code);
}

/* Rings that are mapped, and have no name any more. */
static int64_t mappings(void)
{
    char line[1024];
    int64_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, ".queue-") && strstr(line, "(deleted)");
    fclose(maps);
    return count;
}

/* --- what is done with the queue -------------------------------------------------------------- */

static void take(sb_queue *queue, int64_t timeout_ns, bool late)
{
    sb_message message = {0};
    int64_t code = sb_get(queue, &message, timeout_ns);
    check("get", code);
    if (code != SB_OK)
        return;
    if (late)
        usleep(200); /* the queue may be deleted meanwhile: the body is still there to be read */
    volatile char first = *(const char *)message.body;
    (void)first;
    check("ack", late ? sb_give_back(queue, &message) : sb_ack(queue, &message));
}

static void lend(sb_queue *queue, bool publishes)
{
    sb_loan loan = {0};
    const sb_outgoing shape = {.length = 64};
    int64_t code = sb_loan_take(queue, &shape, &loan);
    check("loan", code);
    if (code != SB_OK)
        return;
    memset(loan.body, 7, 64);
    code = publishes ? sb_loan_publish(queue, &loan, 0) : SB_FULL;
    check("publishing a loan", code);
    if (code == SB_FULL)
        check("dropping a loan", sb_loan_drop(queue, &loan));
}

static void watch(sb_queue *queue, bool lossy)
{
    char buffer[4096];
    sb_cursor cursor = {0};
    sb_message message;
    int64_t code = sb_subscribe(queue, &cursor, 0, lossy);
    check("subscribe", code);
    if (code != SB_OK)
        return;
    check("next", sb_next(queue, &cursor, &message, buffer, sizeof buffer, MS / 4));
    check("unsubscribe", sb_unsubscribe(queue, &cursor));
}

static void compiled(sb_queue *queue)
{
    sb_port *port;
    int64_t code = sb_queue_port(queue, &port);
    check("port", code);
    if (code != SB_OK)
        return;
    sb_message message = {0};
    for (int each = 0; each < 4; each++)
        check("publishing by a port", sb_port_publish(port, "by a port", 9));
    if (sb_port_take(port, &message) == SB_OK)
        check("acknowledging by a port", sb_port_ack(port, &message));
    check("returning a port", sb_queue_port_return(queue, port));
}

static void commit(sb_queue *queue)
{
    sb_transaction *transaction;
    sb_message message = {0};
    const sb_outgoing outgoing = {.body = "together", .length = 8};
    if (sb_transaction_begin(connection, &transaction) != SB_OK)
        return;
    check("publishing in a transaction", sb_transaction_publish(transaction, queue, &outgoing));
    if (sb_get(queue, &message, 0) == SB_OK)
        check("acknowledging in a transaction", sb_transaction_ack(transaction, queue, &message));
    int64_t code = sb_transaction_commit(transaction, 0);
    while (code == SB_UNFINISHED)
        code = sb_transaction_commit(transaction, MS);
    check("commit", code);
    sb_transaction_free(transaction);
}

static void route(bool receipts_too)
{
    sb_exchange *exchange;
    sb_receipts receipts = {0};
    int64_t done = 0;
    const sb_outgoing outgoing = {.body = "routed", .length = 6, .key = NAME,
                                  .key_length = sizeof NAME - 1};
    if (sb_open_exchange(connection, "", &exchange) != SB_OK)
        return;
    int64_t code = receipts_too
                       ? sb_exchange_publish_receipts(exchange, &outgoing, 0, &done, &receipts)
                       : sb_exchange_publish(exchange, &outgoing, 0, &done);
    check("publishing to an exchange", code);
    sb_queue *full = NULL;
    if (code == SB_FULL &&
        sb_exchange_full(exchange, NAME, sizeof NAME - 1, NULL, 0, done, &full) == SB_OK && full)
        check("closing what is full", sb_close_queue(full));
    sb_receipts_free(&receipts);
}

static void wait_for(sb_queue *queue)
{
    int64_t control = 0;
    sb_wait waits[] = {{.queue = queue, .position = SB_A_MESSAGE, .returned = -1},
                       {.queue = queue, .position = SB_ROOM, .returned = -1}};
    check("waiting for any", sb_wait_any(waits, 2, &control, 0, MS / 4));
}

static void look(sb_queue *queue)
{
    char buffer[4096];
    sb_queue_statistics told;
    sb_message message;
    check("statistics", sb_statistics(queue, &told));
    check("browse", sb_browse(queue, 0, &message, buffer, sizeof buffer));
    check("published", sb_published(queue));
    check("settings", sb_settings_given(queue, buffer, sizeof buffer));
}

static void schedule(sb_queue *queue)
{
    const sb_outgoing outgoing = {.body = "later", .length = 5, .delay_ns = MS / 4};
    sb_queue *ring = NULL;
    sb_queue_statistics told;
    check("scheduling", sb_publish_message(queue, &outgoing, 0));
    check("the schedule", sb_schedule(queue, &ring));
    if (ring)
        check("statistics of the schedule", sb_statistics(ring, &told));
}

static void ask(sb_queue *queue)
{
    sb_asked asked;
    sb_message message = {0};
    const sb_outgoing outgoing = {.body = "well?", .length = 5};
    int64_t code = sb_ask(queue, &outgoing, &asked, 0);
    check("asking", code);
    if (code == SB_OK && sb_get(queue, &message, 0) == SB_OK) {
        int64_t replied = sb_reply(queue, &message, &outgoing, 0);
        if (replied != SB_INVALID) /* it asks for none */
            check("replying", replied);
        check("ack of a request", sb_ack(queue, &message));
        check("a reply", sb_await_reply(&asked, MS / 4));
    }
    if (code == SB_OK)
        check("the end of a request", sb_asked_end(&asked));
}

static void use(sb_queue *queue, unsigned what)
{
    char number[8] = {0};
    switch (what % 16) {
    case 0: case 1: check("publish", sb_publish(queue, "a message", 9, 0)); break;
    case 2: check("publishing late", sb_publish(queue, "a message", 9, MS / 4)); break;
    case 3: take(queue, 0, false); break;
    case 4: take(queue, MS, false); break;
    case 5: take(queue, 0, true); break;
    case 6: lend(queue, what & 16); break;
    case 7: watch(queue, what & 16); break;
    case 8: compiled(queue); break;
    case 9: commit(queue); break;
    case 10: route(what & 16); break;
    case 11: wait_for(queue); break;
    case 12: look(queue); break;
    case 13: schedule(queue); break;
    case 14: ask(queue); break;
    default:
        check("purge", sb_purge(queue));
        check("with an id",
              sb_publish_with(queue, "once", 4, NULL, 0, NULL, 0, 0, 0, number, 8, 0));
    }
}

static sb_queue *handle(unsigned what)
{
    sb_queue *queue = NULL;
    pthread_mutex_lock(&mutex);
    if ((what & 3) == 0 && shared) { /* what another thread has opened, perhaps long ago */
        queue = shared;
        sb_share_queue(queue);
    }
    pthread_mutex_unlock(&mutex);
    if (!queue && sb_open_queue(connection, NAME, &queue) != SB_OK)
        return NULL;
    pthread_mutex_lock(&mutex);
    sb_queue *before = NULL;
    if ((what & 3) == 1) {
        sb_share_queue(queue);
        before = shared;
        shared = queue;
    }
    pthread_mutex_unlock(&mutex);
    if (before)
        sb_close_queue(before);
    return queue;
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(intptr_t)argument;
    while (atomic_load(rounds_done) >= 0) {
        sb_queue *queue = handle((unsigned)rand_r(&seed) >> 8);
        for (int each = rand_r(&seed) % 4; queue && each >= 0; each--)
            use(queue, (unsigned)rand_r(&seed) >> 8);
        if (queue)
            sb_close_queue(queue);
    }
    return NULL;
}

/* --- who deletes it --------------------------------------------------------------------------- */

static int make_and_delete(const char *vhost, int64_t rounds)
{
    sb_connection *other;
    sb_queue *queue;
    int64_t code = sb_connect(vhost, "deletes", &other);
    for (int64_t each = 0; code == SB_OK && each < rounds; each++) {
        code = sb_declare_queue(other, NAME, SLOTS);
        if (code == SB_OK && (code = sb_open_queue(other, NAME, &queue)) == SB_OK) {
            for (int message = 0; message < 4; message++)
                sb_publish(queue, "from the other", 14, 0);
            sb_close_queue(queue);
            usleep(each % 8 * 50);
            code = sb_delete_queue(other, NAME, 1);
        }
        atomic_store(rounds_done, each);
    }
    atomic_store(rounds_done, -1);
    if (code < 0)
        fprintf(stderr, "deleting: %s: %s\n", sb_strerror(code), sb_detail(code));
    sb_connection_free(other);
    return code < 0;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    int64_t rounds = atoll(arguments[2]), threads = atoll(arguments[3]);
    pthread_t all[64];
    rounds_done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t other = fork();
    if (other == 0)
        _exit(make_and_delete(arguments[1], rounds));
    int64_t code = sb_connect(arguments[1], "calls in", &connection);
    if (code != SB_OK)
        fail("connecting", code);
    for (int64_t each = 0; each < threads; each++)
        pthread_create(&all[each], NULL, work, (void *)(intptr_t)(each + 1));
    for (int64_t each = 0; each < threads; each++)
        pthread_join(all[each], NULL);
    int status = 1;
    waitpid(other, &status, 0);
    if (shared)
        sb_close_queue(shared);
    /* who opens looks for what is to be let go of; the mover of schedules is told then */
    sb_queue *none;
    int64_t left;
    for (int tries = 0; (left = mappings()) > 0 && tries < 5000; tries++) {
        sb_open_queue(connection, "none", &none);
        usleep(MS / 1000);
    }
    printf("%lld calls, %lld found it deleted, %lld mappings left\n", (long long)calls,
           (long long)found_deleted, (long long)left);
    sb_connection_free(connection);
    return status != 0 || left > 0;
}
