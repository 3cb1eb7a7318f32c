/*
 * The registry of id ranges, /run/barchan/ids: one lock file per range. A lock is held by the
 * launcher and the sandbox's process 1 and vanishes with the last of them, however they die. The
 * range from 0x70000000 to 0x7FFFFFFF is left free by systemd's and the distributions'
 * assignments of user and group ids.
 */
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_ID 0x70000000u

/* A directory below `dir` that only root can change. */
static int open_private_dir(int dir, const char *name, mode_t mode)
{
    if (mkdirat(dir, name, mode) < 0 && errno != EEXIST) return -1;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) return -1;
    if (st.st_uid == 0 && (st.st_mode & 022) == 0) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* The lock of one range: its descriptor, -1 when somebody else has it or it is gone, -2 with errno.
 * A file that was removed between open and lock is not the lock of its name any more: somebody has
 * given it back, and perhaps somebody else has made a new one. Only while the file of the name is
 * locked may it be removed. `create` is O_CREAT or 0. */
static int lock_range(int dir, const char *name, int create)
{
    int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | create, 0600);
    if (fd < 0) return errno == ENOENT && create == 0 ? -1 : -2;
    struct stat st;
    int rc = flock(fd, LOCK_EX | LOCK_NB), os_error = errno;
    if (rc == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) return fd;
    close(fd);
    errno = os_error;
    return rc < 0 && os_error != EWOULDBLOCK ? -2 : -1;
}

/* Removes what killed launchers left: lock files that nobody holds. */
static void sweep(int slots_fd)
{
    int fd = openat(slots_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0) close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        int lock = lock_range(slots_fd, entry->d_name, 0);
        if (lock < 0) continue;
        unlinkat(slots_fd, entry->d_name, 0);
        close(lock);
    }
    closedir(dir);
}

/* Whether this process's user namespace has the ids at all. */
static bool ids_are_mapped(const char *map)
{
    FILE *file = fopen(map, "re");
    if (file == NULL) return false;
    bool mapped = false;
    uint64_t inside, outside, count;
    while (fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3) {
        uint64_t end = FIRST_ID + (uint64_t)SLOT_COUNT * SLOT_IDS;
        if (inside <= FIRST_ID && inside + count >= end) mapped = true;
    }
    fclose(file);
    return mapped;
}

int slots_open(struct world *world, struct failure *why)
{
    if (!ids_are_mapped("/proc/self/uid_map") || !ids_are_mapped("/proc/self/gid_map")) {
        return fail_status(why, BC_WIRE_EUNSUPPORTED,
                           "the root of this user namespace has no ids to give to sandboxes; "
                           "run as an ordinary user");
    }
    int run = open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run < 0) return fail_os(why, errno, "open /run");
    int barchan = open_private_dir(run, "barchan", 0755);
    int os_error = errno;
    close(run);
    if (barchan < 0) return fail_os(why, os_error, "the registry of ids, /run/barchan");
    world->slots_fd = open_private_dir(barchan, "ids", 0700);
    os_error = errno;
    close(barchan);
    if (world->slots_fd < 0) return fail_os(why, os_error, "the registry of ids, /run/barchan/ids");
    sweep(world->slots_fd);
    return 0;
}

int slot_take(struct world *world, struct slot *slot, struct failure *why)
{
    if (world->spare_slot_count > 0) {
        *slot = world->spare_slots[--world->spare_slot_count];
        return 0;
    }
    /* Beginning at a place of its own, a launcher seldom meets the locks of another. */
    unsigned first = (unsigned)getpid() * 61u % SLOT_COUNT;
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        unsigned number = (first + i) % SLOT_COUNT;
        if (world->slots_held[number / 8] & 1u << number % 8) continue;
        char name[16];
        snprintf(name, sizeof name, "%u", number);
        int fd = lock_range(world->slots_fd, name, O_CREAT);
        if (fd == -2) return fail_os(why, errno, "lock a range of ids, /run/barchan/ids/%s", name);
        if (fd < 0) continue;
        world->slots_held[number / 8] |= (unsigned char)(1u << number % 8);
        *slot = (struct slot){.lock_fd = fd, .number = number};
        slot->base = FIRST_ID + number * SLOT_IDS;
        return 0;
    }
    return fail_status(why, BC_WIRE_ELIMIT, "all %u ranges of ids are in use by sandboxes",
                       SLOT_COUNT);
}

static void release(struct world *world, struct slot *slot)
{
    char name[16];
    snprintf(name, sizeof name, "%u", slot->number);
    unlinkat(world->slots_fd, name, 0); /* while it is still locked */
    close(slot->lock_fd);
    world->slots_held[slot->number / 8] &= (unsigned char)~(1u << slot->number % 8);
}

void slot_give_back(struct world *world, struct slot *slot)
{
    if (slot->lock_fd < 0) return;
    if (world->spare_slots == NULL) world->spare_slots = calloc(SPARE_SLOTS, sizeof *slot);
    if (world->spare_slots != NULL && world->spare_slot_count < SPARE_SLOTS) {
        world->spare_slots[world->spare_slot_count++] = *slot;
    } else {
        release(world, slot);
    }
    slot->lock_fd = -1;
}

void slots_close(struct world *world)
{
    while (world->spare_slot_count > 0) {
        release(world, &world->spare_slots[--world->spare_slot_count]);
    }
}
