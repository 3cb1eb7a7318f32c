/*
 * No path is resolved here. A name is one part, checked, and made in a folder that was made, and is
 * held open, by this very stream; it must be new. What a link says is never looked up. Further
 * names of a file are made from a first one in a folder of our own, where the stream cannot reach.
 *
 * A folder is 0700 until it is left, and a file is written before it gets its rights: so what may
 * not be written in the end can be filled.
 */
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "channel/frame.h"

#define SAME_DIR "same" /* no name of a place */
#define PERMISSIONS 0777u

struct level {
    int fd;
    unsigned mode; /* which it gets when it is left */
};

struct bc_unpack {
    int root_fd, same_fd;
    bc_unpack_limits limits;
    bc_unpack_totals totals;
    struct level levels[BC_PACK_MAX_LEVELS + 1];
    unsigned depth;
    unsigned seen_places; /* bits */
    /* The file whose extents are coming; file_fd -1: none. */
    int file_fd;
    unsigned file_mode;
    struct timespec file_time;
    uint64_t file_size, file_at;
    uint32_t extent_left;
    int hole_last;      /* its end is in no extent */
    unsigned char *ids; /* bits of those that came */
    bc_buf in;
    int done, failed;
};

static int broken(const char *what, barchan_error *err)
{
    return bc_error_set(err, BARCHAN_EPROTOCOL, "the sandbox sent a malformed snapshot: %s", what);
}

static int failed(const char *what, const char *name, barchan_error *err)
{
    char shown[128];
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < sizeof shown; i++) {
        shown[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i];
    }
    shown[i] = '\0';
    if (errno == EEXIST) return broken("a name twice", err);
    return bc_error_set_os(err, errno, "%s '%s'", what, shown);
}

/* ---- reading a record ---- */

static int is_part(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strchr(name, '/') == NULL;
}

static struct timespec read_time(bc_wire_reader *in)
{
    struct timespec time = {.tv_sec = (time_t)bc_wire_u64(in)};
    uint32_t ns = bc_wire_u32(in);
    if (ns > 999999999) in->bad = 1;
    time.tv_nsec = (long)ns;
    return time;
}

static const char *read_name(bc_wire_reader *in)
{
    const char *name = bc_wire_string(in, BC_PACK_MAX_NAME);
    if (!in->bad && !is_part(name)) in->bad = 1;
    return name;
}

static int count_entry(bc_unpack *u, barchan_error *err)
{
    if (u->totals.entries++ < u->limits.entries) return 0;
    return bc_error_set(err, BARCHAN_ELIMIT, "more than %llu files and folders",
                        (unsigned long long)u->limits.entries);
}

/* The folder that was entered last. */
static int here(const bc_unpack *u)
{
    return u->levels[u->depth - 1].fd;
}

/* ---- folders ---- */

static int place_of(const char *name)
{
    for (unsigned i = 0; i < BC_PACK_PLACES; i++) {
        if (strcmp(bc_pack_place_of(i)->name, name) == 0) return (int)i;
    }
    return -1;
}

static int enter(bc_unpack *u, unsigned mode, const char *name, barchan_error *err)
{
    int parent = u->depth == 0 ? u->root_fd : here(u);
    if (u->depth == 0) {
        int place = place_of(name);
        if (place < 0 || u->seen_places & 1u << place) return broken("an unknown place", err);
        u->seen_places |= 1u << place;
    }
    if (u->depth > BC_PACK_MAX_LEVELS) return broken("too deep", err);
    if (mkdirat(parent, name, 0700) < 0) return failed("make the folder", name, err);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return failed("open the folder", name, err);
    u->levels[u->depth++] = (struct level){.fd = fd, .mode = mode & PERMISSIONS};
    return 0;
}

static int leave(bc_unpack *u, struct timespec time, barchan_error *err)
{
    const struct timespec times[2] = {time, time};
    if (u->depth == 0) return broken("no folder to leave", err);
    struct level *level = &u->levels[--u->depth];
    int rc = 0;
    if (futimens(level->fd, times) < 0 || fchmod(level->fd, level->mode) < 0) {
        rc = failed("finish", "a folder", err);
    }
    close(level->fd);
    return rc;
}

/* ---- files ---- */

static void name_of_id(char name[16], uint32_t id)
{
    snprintf(name, 16, "%u", id);
}

/* Another name for it, of ours. */
static int note_id(bc_unpack *u, uint32_t id, const char *name, barchan_error *err)
{
    char own[16];
    if (id > BC_PACK_MAX_IDS || u->ids[id / 8] & 1u << id % 8) return broken("a bad id", err);
    if (u->same_fd < 0) {
        if (mkdirat(u->root_fd, SAME_DIR, 0700) < 0) return failed("make a folder", "", err);
        u->same_fd = openat(u->root_fd, SAME_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (u->same_fd < 0) return failed("open a folder", "", err);
    }
    name_of_id(own, id);
    if (linkat(here(u), name, u->same_fd, own, 0) < 0) return failed("link", name, err);
    u->ids[id / 8] |= (unsigned char)(1u << id % 8);
    return 0;
}

static int again(bc_unpack *u, uint32_t id, const char *name, barchan_error *err)
{
    char own[16];
    if (id == 0 || id > BC_PACK_MAX_IDS || !(u->ids[id / 8] & 1u << id % 8)) {
        return broken("a bad id", err);
    }
    name_of_id(own, id);
    if (linkat(u->same_fd, own, here(u), name, 0) < 0) return failed("link", name, err);
    return 0;
}

static int begin_file(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    unsigned mode = bc_wire_u32(in);
    struct timespec time = read_time(in);
    uint64_t size = bc_wire_u64(in);
    uint32_t id = bc_wire_u32(in);
    const char *name = read_name(in);
    if (in->bad) return 0;
    if (u->depth == 0) return broken("a file", err);
    if (size > BC_TEMPLATE_MAX_FILE_BYTES) {
        return bc_error_set(err, BARCHAN_ELIMIT, "a file of more than 16 TiB");
    }
    int rc = count_entry(u, err);
    if (rc < 0) return rc;
    u->file_fd = openat(here(u), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->file_fd < 0) return failed("create", name, err);
    u->file_mode = mode & PERMISSIONS;
    u->file_time = time;
    u->file_size = size;
    u->file_at = 0;
    u->extent_left = 0;
    u->hole_last = 0;
    return id == 0 ? 0 : note_id(u, id, name, err);
}

static int end_file(bc_unpack *u, barchan_error *err)
{
    const struct timespec times[2] = {u->file_time, u->file_time};
    if (u->file_at != u->file_size) return broken("a file of another size", err);
    int fd = steal_fd(&u->file_fd), rc = 0;
    if ((u->hole_last && ftruncate(fd, (off_t)u->file_size) < 0) || fchmod(fd, u->file_mode) < 0 ||
        futimens(fd, times) < 0) {
        rc = failed("write", "a file", err);
    }
    close(fd);
    return rc;
}

/* The beginning of an extent. */
static int begin_extent(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    uint32_t len = bc_wire_u32(in);
    if (in->bad) return 0;
    if (len == 0) return end_file(u, err);
    uint64_t hole = len == BC_PACK_HOLE ? bc_wire_u64(in) : 0;
    if (in->bad) return 0;
    if (len == BC_PACK_HOLE) {
        if (hole == 0 || hole > u->file_size - u->file_at) return broken("a hole", err);
        u->file_at += hole;
        u->hole_last = 1;
        return 0;
    }
    if (len > BC_PACK_MAX_EXTENT || len > u->file_size - u->file_at) {
        return broken("an extent", err);
    }
    u->totals.bytes += len;
    if (u->totals.bytes > u->limits.bytes) {
        return bc_error_set(err, BARCHAN_ELIMIT, "more than %llu bytes",
                            (unsigned long long)u->limits.bytes);
    }
    u->extent_left = len;
    u->hole_last = 0;
    return 0;
}

static int write_extent(bc_unpack *u, barchan_error *err)
{
    size_t len = u->in.len < u->extent_left ? u->in.len : u->extent_left;
    const char *data = bc_buf_data(&u->in);
    for (size_t at = 0; at < len;) {
        ssize_t n = pwrite(u->file_fd, data + at, len - at, (off_t)u->file_at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed("write", "a file", err);
        at += (size_t)n;
        u->file_at += (uint64_t)n;
    }
    u->extent_left -= (uint32_t)len;
    bc_buf_consume(&u->in, len);
    return 0;
}

/* ---- the rest ---- */

static int make_link(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    struct timespec time = read_time(in);
    const struct timespec times[2] = {time, time};
    const char *name = read_name(in), *target = bc_wire_string(in, BC_FRAME_MAX_PATH - 1);
    if (in->bad) return 0;
    if (u->depth == 0 || target[0] == '\0') return broken("a link", err);
    int rc = count_entry(u, err);
    if (rc < 0) return rc;
    if (symlinkat(target, here(u), name) < 0) return failed("make the link", name, err);
    utimensat(here(u), name, times, AT_SYMLINK_NOFOLLOW); /* not every file system keeps it */
    return 0;
}

static int make_folder(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    unsigned mode = bc_wire_u32(in);
    const char *name = read_name(in);
    if (in->bad) return 0;
    int rc = count_entry(u, err);
    return rc < 0 ? rc : enter(u, mode, name, err);
}

static int read_done(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    uint64_t entries = bc_wire_u64(in), bytes = bc_wire_u64(in);
    u->totals.left_out = bc_wire_u32(in);
    if (in->bad) return 0;
    if (u->depth != 0 || entries != u->totals.entries || bytes != u->totals.bytes) {
        return broken("another count of files", err);
    }
    u->done = 1;
    return 0;
}

/* One record, or a part of a file. `in->bad`: it is not there yet, or malformed. */
static int read_record(bc_unpack *u, bc_wire_reader *in, barchan_error *err)
{
    if (u->file_fd >= 0) return begin_extent(u, in, err);
    struct timespec time;
    uint32_t id;
    const char *name;
    uint32_t kind = bc_wire_u32(in);
    if (in->bad) return 0;
    switch (kind) {
    case BC_PACK_FOLDER: return make_folder(u, in, err);
    case BC_PACK_LEAVE: time = read_time(in); return in->bad ? 0 : leave(u, time, err);
    case BC_PACK_FILE: return begin_file(u, in, err);
    case BC_PACK_LINK: return make_link(u, in, err);
    case BC_PACK_AGAIN:
        id = bc_wire_u32(in);
        name = read_name(in);
        if (in->bad) return 0;
        if (u->depth == 0) return broken("a file", err);
        if (count_entry(u, err) < 0) return BARCHAN_ELIMIT;
        return again(u, id, name, err);
    case BC_PACK_DONE: return read_done(u, in, err);
    default: return broken("an unknown record", err);
    }
}

static int take(bc_unpack *u, barchan_error *err)
{
    int rc = 0;
    while (rc == 0 && u->in.len > 0) {
        if (u->done) return broken("something after its end", err);
        if (u->extent_left > 0) {
            rc = write_extent(u, err);
            continue;
        }
        bc_wire_reader in = {.at = (const unsigned char *)bc_buf_data(&u->in)};
        const unsigned char *begin = in.at;
        in.end = in.at + u->in.len;
        rc = read_record(u, &in, err);
        if (rc < 0 || !in.bad) {
            bc_buf_consume(&u->in, (size_t)(in.at - begin));
        } else if (u->in.len >= BC_PACK_MAX_RECORD) {
            rc = broken("a record", err);
        } else {
            break; /* the rest is to come */
        }
    }
    return rc;
}

int bc_unpack_write(bc_unpack *u, const void *data, size_t len, barchan_error *err)
{
    int rc = 0;
    if (u->failed) return broken("it had failed", err);
    for (size_t at = 0; at < len && rc == 0;) {
        size_t part = len - at < BC_PACK_MAX_EXTENT ? len - at : BC_PACK_MAX_EXTENT;
        rc = bc_buf_append(&u->in, (const char *)data + at, part);
        if (rc < 0) bc_error_nomem(err);
        if (rc == 0) rc = take(u, err);
        at += part;
    }
    if (rc < 0) u->failed = 1;
    return rc;
}

static int remove_same(bc_unpack *u, barchan_error *err)
{
    char own[16];
    if (u->same_fd < 0) return 0;
    for (uint32_t id = 1; id <= BC_PACK_MAX_IDS; id++) {
        if (!(u->ids[id / 8] & 1u << id % 8)) continue;
        name_of_id(own, id);
        unlinkat(u->same_fd, own, 0);
    }
    if (unlinkat(u->root_fd, SAME_DIR, AT_REMOVEDIR) < 0) return failed("remove", SAME_DIR, err);
    return 0;
}

int bc_unpack_finish(bc_unpack *u, bc_unpack_totals *totals, barchan_error *err)
{
    if (!u->done || u->failed) return broken("it is not whole", err);
    int rc = remove_same(u, err);
    for (unsigned i = 0; i < BC_PACK_PLACES && rc == 0; i++) {
        if (u->seen_places & 1u << i) continue;
        if (mkdirat(u->root_fd, bc_pack_place_of(i)->name, 0755) < 0) {
            rc = failed("make the folder", bc_pack_place_of(i)->name, err);
        }
    }
    *totals = u->totals;
    return rc;
}

int bc_unpack_open(bc_unpack **out, int folder_fd, const bc_unpack_limits *limits,
                   barchan_error *err)
{
    bc_unpack *u = calloc(1, sizeof *u);
    if (u == NULL) return bc_error_nomem(err);
    u->ids = calloc(1, BC_PACK_MAX_IDS / 8 + 1);
    if (u->ids == NULL) {
        free(u);
        return bc_error_nomem(err);
    }
    u->root_fd = folder_fd;
    u->same_fd = u->file_fd = -1;
    u->limits = *limits;
    bc_buf_init(&u->in, BC_PACK_MAX_EXTENT + BC_PACK_MAX_RECORD);
    *out = u;
    return 0;
}

void bc_unpack_free(bc_unpack *u)
{
    if (u == NULL) return;
    while (u->depth > 0) {
        close(u->levels[--u->depth].fd);
    }
    if (u->same_fd >= 0) close(u->same_fd);
    if (u->file_fd >= 0) close(u->file_fd);
    bc_buf_clear(&u->in);
    free(u->ids);
    free(u);
}
