/* Segments in /dev/shm: a ring and its arena, made, attached and removed by name.
 *
 * A segment is made under a temporary name, with memory behind all that is not committed later,
 * its magic written last, and then linked to its own name: nobody ever sees half of one. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmbroker.h"

#define DIRECTORY "/dev/shm/"
#define NAME_MAX_BYTES 128

struct sb_ring {
    void *ring, *arena;
    size_t ring_bytes, arena_bytes;
    int arena_file;
};

static int64_t name_is_good(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return length > 0 && length <= NAME_MAX_BYTES && name[0] != '.' && !strchr(name, '/');
}

static void path_of(char *path, size_t size, const char *name, const char *kind)
{
    snprintf(path, size, DIRECTORY "%s.%s", name, kind);
}

static int64_t failure(void)
{
    return errno == ENOSPC ? SB_NO_MEMORY : SB_SYSTEM;
}

/* Map a file that was opened; on success the caller owns the mapping. */
static int64_t map_file(int file, size_t bytes, void **memory)
{
    *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return *memory == MAP_FAILED ? failure() : SB_OK;
}

/* A new file of this size under a temporary name, the first `allocated` bytes with memory. */
static int64_t make_file(char *path, size_t size, int64_t bytes, int64_t allocated, int *file)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return SB_SYSTEM;
    snprintf(path, size, DIRECTORY ".shmbroker-%016llx", (unsigned long long)random);
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*file < 0)
        return failure();
    if (ftruncate(*file, bytes) == 0 && sb_system_allocate(*file, 0, allocated) == SB_OK)
        return SB_OK;
    int64_t code = failure();
    unlink(path);
    close(*file);
    return code;
}

/* Give a finished segment its name, unless somebody has it already. */
static int64_t name_file(const char *temporary, const char *path)
{
    int64_t code = SB_OK;
    if (link(temporary, path) != 0)
        code = errno == EEXIST ? SB_EXISTS : failure();
    unlink(temporary);
    return code;
}

static int64_t create_arena(const char *path, int64_t data_bytes, int64_t identity)
{
    char temporary[NAME_MAX_BYTES + 64];
    void *memory;
    int file;
    int64_t bytes = sb_arena_bytes(data_bytes);
    if (bytes < 0)
        return bytes;
    int64_t head = bytes - data_bytes;
    int64_t code = make_file(temporary, sizeof temporary, bytes, head, &file);
    if (code != SB_OK)
        return code;
    code = map_file(file, (size_t)head, &memory);
    if (code == SB_OK) {
        sb_arena_format(memory, data_bytes, identity);
        munmap(memory, (size_t)head);
        code = name_file(temporary, path);
    } else {
        unlink(temporary);
    }
    close(file);
    return code;
}

static int64_t create_ring(const char *path, int64_t slots, int64_t flags, int64_t identity)
{
    char temporary[NAME_MAX_BYTES + 64];
    void *memory;
    int file;
    int64_t bytes = sb_ring_bytes(slots);
    if (bytes < 0)
        return bytes;
    int64_t code = make_file(temporary, sizeof temporary, bytes, bytes, &file);
    if (code != SB_OK)
        return code;
    code = map_file(file, (size_t)bytes, &memory);
    if (code == SB_OK) {
        sb_ring_format(memory, slots, 0, flags, identity);
        munmap(memory, (size_t)bytes);
        code = name_file(temporary, path);
    } else {
        unlink(temporary);
    }
    close(file);
    return code;
}

int64_t sb_ring_create(const char *name, int64_t slots, int64_t arena_bytes, int64_t flags)
{
    char arena[NAME_MAX_BYTES + 64], ring[NAME_MAX_BYTES + 64];
    int64_t identity;
    if (!name_is_good(name) || sb_ring_bytes(slots) < 0 || sb_arena_bytes(arena_bytes) < 0)
        return SB_INVALID;
    if (getrandom(&identity, sizeof identity, 0) != sizeof identity)
        return SB_SYSTEM;
    path_of(arena, sizeof arena, name, "arena");
    path_of(ring, sizeof ring, name, "ring");
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
    char arena[NAME_MAX_BYTES + 64], ring[NAME_MAX_BYTES + 64];
    if (!name_is_good(name))
        return SB_INVALID;
    path_of(arena, sizeof arena, name, "arena");
    path_of(ring, sizeof ring, name, "ring");
    int ring_left = unlink(ring), arena_left = unlink(arena);
    return ring_left != 0 || arena_left != 0 ? SB_SYSTEM : SB_OK;
}

/* Open and map a whole segment, after a look at its size. */
static int64_t attach_file(const char *path, int *file, void **memory, size_t *bytes)
{
    struct stat status;
    *file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (*file < 0)
        return SB_SYSTEM;
    int64_t code = SB_SYSTEM;
    if (fstat(*file, &status) == 0) {
        *bytes = (size_t)status.st_size;
        code = status.st_size == 0 ? SB_NOT_A_SEGMENT : map_file(*file, *bytes, memory);
    }
    if (code != SB_OK) {
        close(*file);
        *file = -1;
    }
    return code;
}

int64_t sb_ring_attach(const char *name, sb_ring **attached)
{
    char path[NAME_MAX_BYTES + 64];
    int file;
    if (!name_is_good(name) || !attached)
        return SB_INVALID;
    sb_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return SB_SYSTEM;
    path_of(path, sizeof path, name, "ring");
    int64_t code = attach_file(path, &file, &ring->ring, &ring->ring_bytes);
    if (code != SB_OK) {
        free(ring);
        return code;
    }
    close(file);
    path_of(path, sizeof path, name, "arena");
    code = attach_file(path, &ring->arena_file, &ring->arena, &ring->arena_bytes);
    if (code != SB_OK) {
        munmap(ring->ring, ring->ring_bytes);
        free(ring);
        return code;
    }
    code = sb_ring_check(ring->ring, (int64_t)ring->ring_bytes);
    if (code == SB_OK)
        code = sb_arena_check(ring->arena, (int64_t)ring->arena_bytes);
    if (code != SB_OK) {
        sb_ring_detach(ring);
        return code;
    }
    *attached = ring;
    return SB_OK;
}

int64_t sb_ring_port(sb_ring *ring, int64_t owner, sb_port *port)
{
    int64_t code = sb_port_open(port, ring->ring, (int64_t)ring->ring_bytes, ring->arena,
                                (int64_t)ring->arena_bytes, owner);
    if (code == SB_OK)
        port->file = ring->arena_file;
    return code;
}

void sb_ring_detach(sb_ring *ring)
{
    munmap(ring->ring, ring->ring_bytes);
    munmap(ring->arena, ring->arena_bytes);
    close(ring->arena_file);
    free(ring);
}
