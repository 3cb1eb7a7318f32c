#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The interface as of version 6; headers of distributions are older. linux/landlock.h. */
#define CREATE_VERSION 1u
#define RULE_PATH_BENEATH 1
#define FS_WRITE_FILE (1ull << 1)
#define FS_REMOVE_DIR (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR (1ull << 6)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_MAKE_SOCK (1ull << 9)
#define FS_MAKE_FIFO (1ull << 10)
#define FS_MAKE_BLOCK (1ull << 11)
#define FS_MAKE_SYM (1ull << 12)
#define FS_REFER (1ull << 13)     /* from version 2 */
#define FS_TRUNCATE (1ull << 14)  /* from version 3 */
#define FS_IOCTL_DEV (1ull << 15) /* from version 5 */
#define SCOPE_ABSTRACT_SOCKETS (1ull << 0)
#define SCOPE_SIGNALS (1ull << 1) /* both from version 6 */

struct ruleset {
    uint64_t fs, net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

/* Reading and running are not handled, so that they cost nothing: what can be named may be read. */
static uint64_t handled(int version)
{
    uint64_t fs = FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_CHAR | FS_MAKE_DIR |
                  FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_BLOCK | FS_MAKE_SYM;
    if (version >= 2) fs |= FS_REFER;
    if (version >= 3) fs |= FS_TRUNCATE;
    if (version >= 5) fs |= FS_IOCTL_DEV;
    return fs;
}

/* No device is made anywhere. The empty one, which overlays take for a removed file, counts as a
 * regular file to Landlock on Linux 6.1 (6.1.192); the filter refuses it everywhere. */
static uint64_t allowed(int version, int what)
{
    uint64_t all = handled(version);
    if (what == LANDLOCK_TREE) return all & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK);
    return all & (FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV);
}

int landlock_version(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
}

static int add_place(int rules, int version, const struct landlock_place *place)
{
    struct path_rule rule = {.allowed = allowed(version, place->what)};
    rule.fd = open(place->path, O_PATH | O_CLOEXEC);
    if (rule.fd < 0) return errno == ENOENT ? 0 : -1;
    int rc = (int)syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0);
    int os_error = errno;
    close(rule.fd);
    errno = os_error;
    return rc;
}

int landlock_confine(int version, const struct landlock_place *places, size_t count)
{
    struct ruleset set = {.fs = handled(version)};
    size_t size = version >= 6 ? sizeof set : version >= 4 ? 16 : 8;
    if (version >= 6) set.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
    if (rules < 0) return -1;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = add_place(rules, version, &places[i]);
    }
    if (rc == 0) rc = (int)syscall(SYS_landlock_restrict_self, rules, 0);
    int os_error = errno;
    close(rules);
    errno = os_error;
    return rc;
}
