/*
 * A stream of files from a guest (channel/pack.h), unpacked below a folder: whatever it says, what
 * lies beside the folder stays as it is, all that was made can be removed, and how the bytes were
 * cut makes no difference to what comes of them.
 */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "channel/frame.h"
#include "sandbox/templates.h"
#include "sandbox/unpack.h"

static int outside = -1;

static char dir[] = "/dev/shm/barchan-fuzz-XXXXXX";

static void remove_place(void)
{
    bc_tree_remove(AT_FDCWD, dir);
}

static void make_place(void)
{
    if (mkdtemp(dir) == NULL) {
        strcpy(dir, "/tmp/barchan-fuzz-XXXXXX");
        CLAIM(mkdtemp(dir) != NULL);
    }
    outside = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLAIM(outside >= 0 && mkdirat(outside, "victim", 0700) == 0);
    CLAIM(atexit(remove_place) == 0);
}

static unsigned count_entries(int fd)
{
    unsigned count = 0;
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    CLAIM(list != NULL);
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    return count - 2;
}

struct outcome {
    int rc;
    bc_unpack_totals totals;
    unsigned places;
};

static struct outcome unpack(const uint8_t *data, size_t size, size_t step)
{
    const bc_unpack_limits limits = {.bytes = 1 << 16, .entries = 200};
    struct outcome outcome = {0};
    bc_unpack *u;
    CLAIM(mkdirat(outside, "root", 0700) == 0);
    int root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLAIM(root >= 0 && bc_unpack_open(&u, root, &limits, NULL) == 0);
    for (size_t at = 0; at < size && outcome.rc == 0; at += step) {
        size_t n = size - at < step ? size - at : step;
        outcome.rc = bc_unpack_write(u, data + at, n, NULL);
    }
    if (outcome.rc == 0) outcome.rc = bc_unpack_finish(u, &outcome.totals, NULL);
    bc_unpack_free(u);
    outcome.places = count_entries(root);
    if (outcome.rc == 0) CLAIM(outcome.places == BC_PACK_PLACES);
    close(root);
    struct stat st;
    CLAIM(fstatat(outside, "victim", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
          st.st_mode == (S_IFDIR | 0700));
    int victim = openat(outside, "victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLAIM(count_entries(victim) == 0 && count_entries(outside) == 2);
    close(victim);
    CLAIM(bc_tree_remove(outside, "root") == 0);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (outside < 0) make_place();
    if (size == 0) return 0;
    struct outcome whole = unpack(data, size, size);
    for (size_t step = 1; step <= 3; step++) {
        struct outcome pieces = unpack(data, size, step);
        CLAIM(pieces.rc == whole.rc);
        CLAIM(pieces.totals.entries == whole.totals.entries);
        CLAIM(pieces.totals.bytes == whole.totals.bytes);
    }
    return 0;
}
