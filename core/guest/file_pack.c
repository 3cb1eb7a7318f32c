/*
 * The writable places of the sandbox as one stream, for a snapshot (channel/pack.h). Nothing else
 * runs meanwhile, so what is looked at is what is sent; should it not be, the operation fails.
 *
 * It runs with the command's rights, and what it may not read fails it, by name: a snapshot is
 * whole, or there is none. Left out, and counted, are FIFOs, sockets and devices; left out are
 * also other mounts, of which those of a template's own trees are none.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As much of a path as an error names. */
#define MAX_SHOWN 300

struct named {
    uint64_t ino; /* 0: a free place */
    uint32_t dev_minor, dev_major, id;
};

struct pack {
    struct file_result *result;
    unsigned char buffer[2 * BC_PACK_MAX_EXTENT];
    bc_wire_writer out;
    uint64_t mount_id; /* of the place */
    uint64_t entries, bytes;
    uint32_t left_out;
    char path[MAX_SHOWN + NAME_MAX + 2]; /* of the current entry, cut at MAX_SHOWN */
    struct named *named; /* files that have more names; a table, half full at most */
    size_t capacity;
    uint32_t last_id;
};

/* ---- failing, naming what it was ---- */

static int fail(struct pack *p, int os_error)
{
    static char words[MAX_SHOWN + NAME_MAX + 128];
    file_fail_os(p->result, os_error);
    snprintf(words, sizeof words, "%s: %s", p->path, strerror(os_error));
    p->result->words = words;
    return -1;
}

static int fail_words(struct pack *p, uint32_t status, const char *why)
{
    static char words[MAX_SHOWN + NAME_MAX + 128];
    snprintf(words, sizeof words, "%s: %s", p->path, why);
    return file_fail(p->result, status, words);
}

/* The length before, to be given to path_cut. */
static size_t path_add(struct pack *p, const char *name)
{
    size_t len = strlen(p->path);
    if (len < MAX_SHOWN) snprintf(p->path + len, sizeof p->path - len, "/%s", name);
    return len;
}

static void path_cut(struct pack *p, size_t len)
{
    p->path[len] = '\0';
}

/* ---- records ---- */

static int flush(struct pack *p)
{
    if (file_write_all(FILE_OUT_FD, p->buffer, p->out.len) < 0) return fail(p, errno);
    p->out.len = 0;
    return 0;
}

static int make_room(struct pack *p, size_t len)
{
    return p->out.cap - p->out.len < len ? flush(p) : 0;
}

static void put_time(struct pack *p, const struct statx *st)
{
    bc_wire_put_u64(&p->out, (uint64_t)st->stx_mtime.tv_sec);
    bc_wire_put_u32(&p->out, st->stx_mtime.tv_nsec);
}

static void put_name(struct pack *p, const char *name)
{
    bc_wire_put_string(&p->out, name, strlen(name));
}

/* ---- files of more than one name ---- */

static int grow_named(struct pack *p)
{
    size_t capacity = p->capacity == 0 ? 256 : p->capacity * 2;
    struct named *table = calloc(capacity, sizeof *table);
    if (table == NULL) return fail(p, ENOMEM);
    for (size_t i = 0; i < p->capacity; i++) {
        if (p->named[i].ino == 0) continue;
        size_t at = p->named[i].ino & (capacity - 1);
        while (table[at].ino != 0) {
            at = (at + 1) & (capacity - 1);
        }
        table[at] = p->named[i];
    }
    free(p->named);
    p->named = table;
    p->capacity = capacity;
    return 0;
}

/* The file's place in the table, with an id if it was met before; NULL: no more are noted, or out
 * of memory, which the result says. */
static struct named *find_named(struct pack *p, const struct statx *st)
{
    if (p->last_id == BC_PACK_MAX_IDS) return NULL;
    if ((size_t)p->last_id * 2 >= p->capacity && grow_named(p) < 0) return NULL;
    size_t at = st->stx_ino & (p->capacity - 1);
    while (p->named[at].ino != 0 &&
           (p->named[at].ino != st->stx_ino || p->named[at].dev_minor != st->stx_dev_minor ||
            p->named[at].dev_major != st->stx_dev_major)) {
        at = (at + 1) & (p->capacity - 1);
    }
    struct named *named = &p->named[at];
    named->ino = st->stx_ino;
    named->dev_minor = st->stx_dev_minor;
    named->dev_major = st->stx_dev_major;
    return named;
}

/* ---- one file ---- */

static int send_bytes(struct pack *p, int fd, uint64_t len)
{
    while (len > 0) {
        size_t most = len < BC_PACK_MAX_EXTENT ? (size_t)len : BC_PACK_MAX_EXTENT;
        if (make_room(p, most + 4) < 0) return -1;
        ssize_t n = read(fd, p->out.data + p->out.len + 4, most);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(p, errno);
        if (n == 0) return fail_words(p, BC_WIRE_EBUSY, "it became shorter meanwhile");
        bc_wire_put_u32(&p->out, (uint32_t)n);
        p->out.len += (size_t)n;
        p->bytes += (uint64_t)n;
        len -= (uint64_t)n;
    }
    return 0;
}

static int send_hole(struct pack *p, uint64_t len)
{
    if (make_room(p, 12) < 0) return -1;
    bc_wire_put_u32(&p->out, BC_PACK_HOLE);
    bc_wire_put_u64(&p->out, len);
    return 0;
}

/* Holes are told as such only where the file has some: looking for them costs two calls. */
static int send_extents(struct pack *p, int fd, const struct statx *st)
{
    uint64_t size = st->stx_size, at = 0;
    bool holes = st->stx_blocks * 512 < size;
    while (at < size) {
        off_t data = holes ? lseek(fd, (off_t)at, SEEK_DATA) : (off_t)at;
        if (data < 0 && errno != ENXIO) {
            holes = false; /* this file system does not tell */
            if (lseek(fd, (off_t)at, SEEK_SET) < 0) return fail(p, errno);
            continue;
        }
        uint64_t begin = data < 0 || (uint64_t)data > size ? size : (uint64_t)data;
        if (begin > at && send_hole(p, begin - at) < 0) return -1;
        off_t hole = holes && begin < size ? lseek(fd, (off_t)begin, SEEK_HOLE) : (off_t)size;
        if (hole < 0) return fail(p, errno);
        at = (uint64_t)hole < size ? (uint64_t)hole : size;
        if (begin >= at) continue;
        if (holes && lseek(fd, (off_t)begin, SEEK_SET) < 0) return fail(p, errno);
        if (send_bytes(p, fd, at - begin) < 0) return -1;
    }
    if (make_room(p, 4) < 0) return -1;
    bc_wire_put_u32(&p->out, 0);
    return 0;
}

static int pack_file(struct pack *p, int dir, const char *name, const struct statx *st)
{
    struct named *named = st->stx_nlink > 1 ? find_named(p, st) : NULL;
    if (p->result->os_error != 0 || make_room(p, BC_PACK_MAX_RECORD) < 0) return -1;
    if (named != NULL && named->id != 0) {
        bc_wire_put_u32(&p->out, BC_PACK_AGAIN);
        bc_wire_put_u32(&p->out, named->id);
        put_name(p, name);
        return 0;
    }
    if (named != NULL) named->id = ++p->last_id;
    bc_wire_put_u32(&p->out, BC_PACK_FILE);
    bc_wire_put_u32(&p->out, st->stx_mode & 0777u);
    put_time(p, st);
    bc_wire_put_u64(&p->out, st->stx_size);
    bc_wire_put_u32(&p->out, named == NULL ? 0 : named->id);
    put_name(p, name);
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return fail(p, errno);
    int rc = send_extents(p, fd, st);
    close(fd);
    return rc;
}

static int pack_link(struct pack *p, int dir, const char *name, const struct statx *st)
{
    char target[BC_FRAME_MAX_PATH];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < 0) return fail(p, errno);
    if (n == sizeof target) return fail(p, ENAMETOOLONG);
    if (make_room(p, BC_PACK_MAX_RECORD) < 0) return -1;
    bc_wire_put_u32(&p->out, BC_PACK_LINK);
    put_time(p, st);
    put_name(p, name);
    bc_wire_put_string(&p->out, target, (size_t)n);
    return 0;
}

/* ---- folders ---- */

#define LOOK (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)
#define WANTED (STATX_BASIC_STATS | STATX_MNT_ID)

static int pack_folder(struct pack *p, int dir, const char *name, const char *shown,
                       const struct statx *st, unsigned levels);

static int pack_entry(struct pack *p, int dir, const char *name, unsigned levels)
{
    struct statx st;
    if (statx(dir, name, LOOK, WANTED, &st) < 0) return fail(p, errno);
    if (st.stx_mnt_id != p->mount_id) return 0;
    switch (st.stx_mode & S_IFMT) {
    case S_IFDIR: return pack_folder(p, dir, name, name, &st, levels);
    case S_IFREG: p->entries++; return pack_file(p, dir, name, &st);
    case S_IFLNK: p->entries++; return pack_link(p, dir, name, &st);
    default: p->left_out++; return 0;
    }
}

/* Takes `fd`. */
static int pack_inside(struct pack *p, int fd, unsigned levels)
{
    struct dirent *entry;
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        close(fd);
        return fail(p, ENOMEM);
    }
    int rc = 0;
    errno = 0;
    while (rc == 0 && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            size_t len = path_add(p, entry->d_name);
            rc = pack_entry(p, fd, entry->d_name, levels);
            path_cut(p, len);
        }
        errno = 0;
    }
    if (rc == 0 && errno != 0) rc = fail(p, errno);
    closedir(stream);
    return rc;
}

/* `shown` is its name in the stream. */
static int pack_folder(struct pack *p, int dir, const char *name, const char *shown,
                       const struct statx *st, unsigned levels)
{
    if (levels == 0) return fail_words(p, BC_WIRE_ELIMIT, "folders lie too deep in each other");
    if (make_room(p, BC_PACK_MAX_RECORD) < 0) return -1;
    p->entries++;
    bc_wire_put_u32(&p->out, BC_PACK_FOLDER);
    bc_wire_put_u32(&p->out, st->stx_mode & 0777u);
    put_name(p, shown);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return fail(p, errno);
    if (pack_inside(p, fd, levels - 1) < 0 || make_room(p, 16) < 0) return -1;
    bc_wire_put_u32(&p->out, BC_PACK_LEAVE);
    put_time(p, st);
    return 0;
}

static int pack_place(struct pack *p, const bc_pack_place *place)
{
    struct statx st;
    snprintf(p->path, sizeof p->path, "%s", place->target);
    if (statx(AT_FDCWD, place->target, LOOK, WANTED, &st) < 0) return fail(p, errno);
    p->mount_id = st.stx_mnt_id;
    int rc = pack_folder(p, AT_FDCWD, place->target, place->name, &st, BC_PACK_MAX_LEVELS + 1);
    p->path[0] = '\0';
    return rc;
}

int file_pack(const struct file_request *request, struct file_result *result)
{
    static struct pack pack;
    pack.result = result;
    pack.out = (bc_wire_writer){.data = pack.buffer, .cap = sizeof pack.buffer};
    for (unsigned i = 0; i < BC_PACK_PLACES; i++) {
        if (request->hidden_places & 1u << i) continue;
        if (pack_place(&pack, bc_pack_place_of(i)) < 0) return -1;
    }
    if (make_room(&pack, BC_PACK_MAX_RECORD) < 0) return -1;
    bc_wire_put_u32(&pack.out, BC_PACK_DONE);
    bc_wire_put_u64(&pack.out, pack.entries);
    bc_wire_put_u64(&pack.out, pack.bytes);
    bc_wire_put_u32(&pack.out, pack.left_out);
    result->bytes = pack.bytes;
    return flush(&pack);
}
