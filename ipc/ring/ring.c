/* A ring with an arena of its own, by name, without a vhost around it. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"

struct sb_ring {
    segment ring, arena;
};

static bool name_is_good(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return length > 0 && length <= 128 && name[0] != '.' && !strchr(name, '/');
}

static void path_of(char *path, const char *name, const char *kind)
{
    snprintf(path, NAME_ROOM, "/dev/shm/%s.%s", name, kind);
}

static int64_t create_arena(const char *path, int64_t data_bytes, int64_t identity)
{
    segment arena;
    int64_t bytes = sb_arena_bytes(data_bytes);
    int64_t code = segment_make(&arena, path, bytes, bytes - data_bytes);
    if (code != SB_OK)
        return code;
    sb_arena_format(arena.memory, data_bytes, identity);
    code = segment_name(&arena, path);
    segment_detach(&arena);
    return code;
}

static int64_t create_ring(const char *path, int64_t slots, int64_t flags, int64_t identity)
{
    segment ring;
    int64_t bytes = sb_ring_bytes(slots);
    int64_t code = segment_make(&ring, path, bytes, bytes);
    if (code != SB_OK)
        return code;
    sb_ring_format(ring.memory, slots, 0, flags, identity);
    code = segment_name(&ring, path);
    segment_detach(&ring);
    return code;
}

int64_t sb_ring_create(const char *name, int64_t slots, int64_t arena_bytes, int64_t flags)
{
    char arena[NAME_ROOM], ring[NAME_ROOM];
    int64_t identity;
    if (!name_is_good(name) || sb_ring_bytes(slots) < 0 || sb_arena_bytes(arena_bytes) < 0)
        return SB_INVALID;
    if (getrandom(&identity, sizeof identity, 0) != sizeof identity)
        return SB_SYSTEM;
    path_of(arena, name, "arena");
    path_of(ring, name, "ring");
    int64_t code = create_arena(arena, arena_bytes, identity);
    if (code != SB_OK)
        return code;
    code = create_ring(ring, slots, flags, identity);
    if (code != SB_OK)
        unlink(arena);
    return code;
}

int64_t sb_ring_remove(const char *name)
{
    char arena[NAME_ROOM], ring[NAME_ROOM];
    if (!name_is_good(name))
        return SB_INVALID;
    path_of(arena, name, "arena");
    path_of(ring, name, "ring");
    int ring_left = unlink(ring), arena_left = unlink(arena);
    return ring_left != 0 || arena_left != 0 ? SB_SYSTEM : SB_OK;
}

int64_t sb_ring_attach(const char *name, sb_ring **attached)
{
    char path[NAME_ROOM];
    if (!name_is_good(name) || !attached)
        return SB_INVALID;
    sb_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return SB_SYSTEM;
    ring->arena.file = -1;
    path_of(path, name, "ring");
    int64_t code = segment_attach(&ring->ring, path, 1, &trust_segments);
    path_of(path, name, "arena");
    if (code == SB_OK)
        code = segment_attach(&ring->arena, path, 1, &trust_segments);
    if (code == SB_OK)
        code = sb_ring_check(ring->ring.memory, ring->ring.bytes);
    if (code == SB_OK)
        code = sb_arena_check(ring->arena.memory, ring->arena.bytes);
    if (code != SB_OK) {
        int error = errno;
        sb_ring_detach(ring);
        errno = error;
        return code;
    }
    *attached = ring;
    return SB_OK;
}

int64_t sb_ring_port(sb_ring *ring, int64_t owner, sb_port *port)
{
    int64_t code = sb_port_open(port, ring->ring.memory, ring->ring.bytes, ring->arena.memory,
                                ring->arena.bytes, owner);
    if (code == SB_OK)
        port->file = ring->arena.file;
    return code;
}

void sb_ring_detach(sb_ring *ring)
{
    segment_detach(&ring->ring);
    segment_detach(&ring->arena);
    free(ring);
}
