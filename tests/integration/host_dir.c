#include "host_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "sandbox_support.h"

static char dir[48];

void host_dir_make(void)
{
    strcpy(dir, "/tmp/barchan-mounts-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0755), 0);
}

void host_dir_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", dir, dir);
    ck_assert_int_eq(system(command), 0);
}

const char *at(const char *name)
{
    static char path[64][512];
    static int next;
    char *result = path[next++ % 64];
    snprintf(result, sizeof path[0], "%s/%s", dir, name);
    return result;
}

void give(const char *path)
{
    if (is_root()) ck_assert_int_eq(lchown(path, OWNER, OWNER), 0);
}

void put(const char *name, const char *text, mode_t mode)
{
    FILE *file = fopen(at(name), "we");
    ck_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(chmod(at(name), mode), 0);
    give(at(name));
}

void folder(const char *name, mode_t mode)
{
    ck_assert_int_eq(mkdir(at(name), mode), 0);
    ck_assert_int_eq(chmod(at(name), mode), 0);
    give(at(name));
}

void host_has(const char *name, const char *text)
{
    char bytes[4096];
    struct stat st;
    if (text == NULL) {
        ck_assert_msg(lstat(at(name), &st) < 0, "%s is there", name);
        return;
    }
    FILE *file = fopen(at(name), "re");
    ck_assert_msg(file != NULL, "%s is missing", name);
    size_t n = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[n] = '\0';
    ck_assert_str_eq(bytes, text);
}

int copies_work(void)
{
    int fd = memfd_create("probe", MFD_CLOEXEC);
    int rc = fsetxattr(fd, "user.barchan", "", 0, 0);
    close(fd);
    if (rc < 0) printf("SKIP copy-on-write needs user attributes on tmpfs (Linux 6.6)\n");
    return rc == 0;
}

int create_with(const barchan_mount *mounts, size_t count, barchan_error *err)
{
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    return barchan_sandbox_create(&sbx, rt, PROFILE(.mounts = mounts, .mount_count = count), err);
}

void shows(const barchan_mount *mounts, size_t count)
{
    barchan_error err = {0};
    ck_assert_msg(create_with(mounts, count, &err) == 0, "%s", err.message);
}
