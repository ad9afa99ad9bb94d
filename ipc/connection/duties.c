/* What waits and locks ask of the rooms above them. */

#include "commit/commit.h"
#include "connection/connection.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "request/request.h"

const duties all_duties = {
    .repair_catalog = catalog_repair,
    .repair = sb_repair,
    .repair_ring = queue_repair_between_sleeps,
    .repair_rings = rings_repair,
    .expire = queue_expire,
    .replies_to = reply_goes_to,
    .at_a_moment = commit_moment,
    .was_published = inherited_has,
    .is_empty = queue_is_empty,
    .leave = sb_disconnect,
};
