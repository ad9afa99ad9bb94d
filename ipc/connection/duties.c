/* What waits and locks ask of the rooms above them. */

#include "connection/connection.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "request/request.h"

const duties all_duties = {
    .tidy = catalog_tidy,
    .repair = sb_repair,
    .look_after = queue_look_after,
    .look_after_some = wait_upkeep,
    .expire = queue_expire,
    .replies_to = reply_goes_to,
    .leave = sb_disconnect,
};
