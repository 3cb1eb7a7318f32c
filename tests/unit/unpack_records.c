#include "unpack_records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "channel/frame.h"
#include "sandbox/templates.h"
#include "suite.h"

static char dir[64];
int outside;
int root;
unsigned char bytes[1 << 20];
bc_wire_writer out;
bc_unpack_limits limits;
uint64_t entries, data_bytes;

void begin_tree(void)
{
    strcpy(dir, "/tmp/barchan-unpack-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    outside = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(mkdirat(outside, "root", 0700), 0);
    ck_assert_int_eq(mkdirat(outside, "victim", 0700), 0);
    root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    out = (bc_wire_writer){.data = bytes, .cap = sizeof bytes};
    limits = (bc_unpack_limits){.bytes = 1 << 20, .entries = 1000};
    entries = data_bytes = 0;
}

int count_in(int fd)
{
    int count = 0;
    DIR *list = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    return count - 2;
}

void end_tree(void)
{
    int victim = openat(outside, "victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(count_in(victim), 0);
    ck_assert_int_eq(count_in(outside), 2);
    close(victim);
    close(root);
    ck_assert_int_eq(bc_tree_remove(outside, "root"), 0);
    close(outside);
    ck_assert_int_eq(bc_tree_remove(AT_FDCWD, dir), 0);
}

/* ---- records ---- */

void put_name(const char *name)
{
    bc_wire_put_string(&out, name, strlen(name));
}

void put_time(int64_t s, uint32_t ns)
{
    bc_wire_put_u64(&out, (uint64_t)s);
    bc_wire_put_u32(&out, ns);
}

void folder(const char *name, unsigned mode)
{
    bc_wire_put_u32(&out, BC_PACK_FOLDER);
    bc_wire_put_u32(&out, mode);
    put_name(name);
    entries++;
}

void leave(void)
{
    bc_wire_put_u32(&out, BC_PACK_LEAVE);
    put_time(1000000000, 5);
}

void file_head(const char *name, unsigned mode, uint64_t size, uint32_t id)
{
    bc_wire_put_u32(&out, BC_PACK_FILE);
    bc_wire_put_u32(&out, mode);
    put_time(1100000000, 7);
    bc_wire_put_u64(&out, size);
    bc_wire_put_u32(&out, id);
    put_name(name);
    entries++;
}

void extent(const void *data, uint32_t len)
{
    bc_wire_put_u32(&out, len);
    bc_wire_put(&out, data, len);
    data_bytes += len;
}

void file(const char *name, const char *text, uint32_t id)
{
    file_head(name, 0644, strlen(text), id);
    if (text[0] != '\0') extent(text, (uint32_t)strlen(text));
    bc_wire_put_u32(&out, 0);
}

void link_to(const char *name, const char *target)
{
    bc_wire_put_u32(&out, BC_PACK_LINK);
    put_time(1200000000, 0);
    put_name(name);
    put_name(target);
    entries++;
}

void again(uint32_t id, const char *name)
{
    bc_wire_put_u32(&out, BC_PACK_AGAIN);
    bc_wire_put_u32(&out, id);
    put_name(name);
    entries++;
}

void done(void)
{
    bc_wire_put_u32(&out, BC_PACK_DONE);
    bc_wire_put_u64(&out, entries);
    bc_wire_put_u64(&out, data_bytes);
    bc_wire_put_u32(&out, 3);
}

/* In pieces of this size. */
int unpack(size_t piece, barchan_error *err)
{
    bc_unpack *u;
    bc_unpack_totals totals = {0};
    int rc = bc_unpack_open(&u, root, &limits, err);
    ck_assert_int_eq(rc, 0);
    ck_assert(!out.full);
    for (size_t at = 0; at < out.len && rc == 0; at += piece) {
        size_t n = out.len - at < piece ? out.len - at : piece;
        rc = bc_unpack_write(u, bytes + at, n, err);
    }
    if (rc == 0) rc = bc_unpack_finish(u, &totals, err);
    if (rc == 0) ck_assert_uint_eq(totals.entries, entries);
    if (rc == 0) ck_assert_uint_eq(totals.bytes, data_bytes);
    if (rc == 0) ck_assert_uint_eq(totals.left_out, 3);
    bc_unpack_free(u);
    return rc;
}

void refused(int code)
{
    barchan_error err = {0};
    int rc = unpack(out.len + 1, &err);
    ck_assert_msg(rc == code && err.code == code, "%d, %s", rc, err.message);
}

void reads(const char *path, const char *text)
{
    char got[64] = "";
    int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && read(fd, got, sizeof got - 1) >= 0, "%s", path);
    ck_assert_str_eq(got, text);
    close(fd);
}
