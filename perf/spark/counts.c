/* Counts of many histograms: unpacked from bytes, checked, and those of a window added up. */
#include "spool.h"

#include <string.h>

enum { HEADER = 40, V2 = 0x1C849313 };

/* Of the eighth byte: a longer number is above 2^55, more than any interval may have. */
enum { SHIFT_MAX = 49 };

static uint64_t big_endian(const uint8_t *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

/* LEB128, zigzag: an odd one is negative, and says how many buckets are empty. */
static int unpack(const uint8_t *at, const uint8_t *stop, int32_t *indexes, int64_t *counts,
                  int64_t *filled)
{
    int64_t index = 0, n = 0;
    while (at < stop) {
        int64_t value = *at++;
        if (value >= 0x80) {
            int64_t octet;
            int shift = 0;
            value &= 0x7F;
            do {
                if ((shift += 7) > SHIFT_MAX)
                    return SB_OVERFLOWS;
                if (at == stop)
                    return SB_TRUNCATED;
                octet = *at++;
                value |= (octet & 0x7F) << shift;
            } while (octet >= 0x80);
        }
        int is_gap = value & 1;
        indexes[n] = (int32_t)index; /* kept if there are any: branches here are hard to predict */
        counts[n] = value >> 1;
        n += !is_gap && value;
        index += is_gap ? (value >> 1) + 1 : 1;
        if (index > INT32_MAX)
            return SB_TOO_LONG;
    }
    *filled = n;
    return SB_GOOD;
}

/* Payload i is at [edges[i], edges[i + 1]); how many buckets were filled. */
int64_t sb_unpack(const uint8_t *octets, const int64_t *edges, int64_t rows,
                  struct sb_counts *found)
{
    int64_t filled = 0;
    found->ends[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *at = octets + edges[row];
        int64_t room = edges[row + 1] - edges[row] - HEADER, more = 0;
        uint8_t fault = SB_FOREIGN;
        if (room >= 0 && big_endian(at, 4) == V2 && !big_endian(at + 8, 4)) {
            int64_t size = (int32_t)big_endian(at + 4, 4);
            found->digits[row] = (int32_t)big_endian(at + 12, 4);
            found->lowest[row] = (int64_t)big_endian(at + 16, 8);
            found->highest[row] = (int64_t)big_endian(at + 24, 8);
            if (size >= 0 && size <= room)
                fault = unpack(at + HEADER, at + HEADER + size, found->indexes + filled,
                               found->counts + filled, &more);
        }
        found->faults[row] = fault;
        filled += more;
        found->ends[row + 1] = filled;
    }
    return filled;
}

/* Each row's sum, which may wrap, and what is wrong with any of its buckets. */
void sb_check(const int64_t *ends, int64_t rows, const int32_t *indexes, const int64_t *counts,
              const int64_t *lengths, int64_t count_max, int64_t *sums, uint8_t *flags)
{
    for (int64_t row = 0; row < rows; row++) {
        int64_t before = INT64_MIN;
        uint64_t sum = 0;
        int outside = 0, falling = 0, unlikely = 0;
        for (int64_t i = ends[row]; i < ends[row + 1]; i++) {
            outside |= indexes[i] < 0 || indexes[i] >= lengths[row];
            falling |= indexes[i] <= before;
            unlikely |= counts[i] < 1 || counts[i] > count_max;
            before = indexes[i];
            sum += (uint64_t)counts[i];
        }
        sums[row] = (int64_t)sum;
        flags[row] =
            (uint8_t)(outside * SB_OUTSIDE | falling * SB_FALLING | unlikely * SB_UNLIKELY);
    }
}

/* Group g is of the rows order[group_ends[g]] to order[group_ends[g + 1]].  `scratch` has a cell
 * for each bucket and `touched` one for each SB_BLOCK of those; both are zero before and after.
 * How many buckets there are. */
int64_t sb_combine(const int64_t *order, const int64_t *group_ends, int64_t groups,
                   const int64_t *ends, const int32_t *indexes, const int64_t *counts,
                   int64_t *scratch, uint8_t *touched,
                   int64_t *new_ends, int32_t *new_indexes, int64_t *new_counts)
{
    int64_t filled = 0;
    new_ends[0] = 0;
    for (int64_t group = 0; group < groups; group++) {
        int64_t last = -1;
        for (int64_t n = group_ends[group]; n < group_ends[group + 1]; n++) {
            int64_t stop = ends[order[n] + 1];
            for (int64_t i = ends[order[n]]; i < stop; i++) {
                scratch[indexes[i]] += counts[i];
                touched[indexes[i] / SB_BLOCK] = 1;
            }
            /* indexes ascend */
            if (stop > ends[order[n]] && indexes[stop - 1] / SB_BLOCK > last)
                last = indexes[stop - 1] / SB_BLOCK;
        }
        for (int64_t block = 0; block <= last; block++) {
            if (!touched[block])
                continue;
            touched[block] = 0;
            for (int32_t index = (int32_t)(block * SB_BLOCK); index < (block + 1) * SB_BLOCK;
                 index++) {
                if (scratch[index]) {
                    new_indexes[filled] = index;
                    new_counts[filled++] = scratch[index];
                    scratch[index] = 0;
                }
            }
        }
        new_ends[group + 1] = filled;
    }
    return filled;
}
