/* Requests and plain messages there and back, in C: python -m shmbroker.perf.micro.request. */
#define _GNU_SOURCE
#include "clock.h"
#include "connect.h"

#define OPEN(handle, name)                                        \
    do {                                                          \
        int64_t opened = sb_open_queue(connection, name, handle); \
        if (opened < 0)                                           \
            return opened;                                        \
    } while (0)

static const char BODY[64];

int64_t request_serve(sb_connection *connection, int64_t trips)
{
    sb_queue *asked;
    OPEN(&asked, "asked");
    for (int64_t trip = 0; trip < trips; trip++) {
        sb_message message;
        int64_t code = sb_get(asked, &message, PATIENCE_NS);
        if (code < 0)
            return code;
        const sb_outgoing reply = {.body = message.body, .length = message.length};
        if ((code = sb_reply(asked, &message, &reply, 0)) < 0 ||
            (code = sb_ack(asked, &message)) < 0)
            return code;
    }
    return SB_OK;
}

int64_t request_ask(sb_connection *connection, int64_t trips, int64_t *spent_ns)
{
    sb_queue *asked;
    OPEN(&asked, "asked");
    const sb_outgoing request = {.body = BODY, .length = sizeof BODY};
    for (int64_t trip = 0; trip < trips; trip++) {
        sb_asked answer;
        int64_t before = now_ns();
        int64_t code = sb_request(asked, &request, &answer, PATIENCE_NS);
        if (code < 0)
            return code;
        sb_asked_end(&answer);
        spent_ns[trip] = now_ns() - before;
    }
    return SB_OK;
}

int64_t messages_serve(sb_connection *connection, int64_t trips)
{
    sb_queue *forth, *back;
    OPEN(&forth, "forth");
    OPEN(&back, "back");
    for (int64_t trip = 0; trip < trips; trip++) {
        sb_message message;
        int64_t code = sb_get(forth, &message, PATIENCE_NS);
        if (code < 0 || (code = sb_publish(back, message.body, message.length, 0)) < 0 ||
            (code = sb_ack(forth, &message)) < 0)
            return code;
    }
    return SB_OK;
}

int64_t messages_ask(sb_connection *connection, int64_t trips, int64_t *spent_ns)
{
    sb_queue *forth, *back;
    OPEN(&forth, "forth");
    OPEN(&back, "back");
    for (int64_t trip = 0; trip < trips; trip++) {
        sb_message message;
        int64_t before = now_ns();
        int64_t code = sb_publish(forth, BODY, sizeof BODY, 0);
        if (code < 0 || (code = sb_get(back, &message, PATIENCE_NS)) < 0 ||
            (code = sb_ack(back, &message)) < 0)
            return code;
        spent_ns[trip] = now_ns() - before;
    }
    return SB_OK;
}
