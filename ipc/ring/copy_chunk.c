/* A chunk that is copied from a file. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "ring/ring.h"

int64_t chunk_reserved_for(sb_port *port, const void *from, int64_t length)
{
    if (length < L_CHUNK_HEADER_BYTES)
        return SB_JOURNAL_DAMAGED;
    int64_t shape = word_load(from, L_CHUNK_SHAPE_AT), mark = word_load(from, L_CHUNK_MARK_AT);
    int64_t flags = (mark >> L_MARK_FLAGS_SHIFT) & L_MARK_FLAGS_MASK;
    int64_t before =
        (shape >> L_SHAPE_KEY_SHIFT & L_SHAPE_LENGTH_MASK) + (shape & L_SHAPE_LENGTH_MASK);
    int64_t start = L_CHUNK_HEADER_BYTES +
                    (flags & L_CHUNK_EXTENDED ? L_CHUNK_EXTENSION_BYTES : 0) +
                    (flags & L_CHUNK_ONCE ? L_CHUNK_ONCE_BYTES : 0);
    int64_t room = start + ((before + 15) & -16);
    if (shape < 0 || (shape >> L_SHAPE_BODY_SHIFT) + room != length ||
        mark >> L_MARK_MAGIC_SHIFT != L_MARK_MAGIC)
        return SB_JOURNAL_DAMAGED;
    /* reserved as one body of the same size: the header is copied over with the rest */
    const sb_outgoing whole = {.length = length - L_CHUNK_HEADER_BYTES};
    int64_t chunk = sb_port_loan_with(port, &whole, NULL);
    if (chunk >= 0)
        memcpy((char *)sb_port_loan_body(port, chunk) - L_CHUNK_HEADER_BYTES, from, (size_t)length);
    return chunk;
}
