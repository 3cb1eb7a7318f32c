/*
 * Runs a test on a machine that lacks something:
 *
 *     without openat2|landlock|cgroups PROGRAM…
 *
 * A system call is answered by ENOSYS, as by an older kernel, for the test, the launcher and the
 * sandboxes alike; control groups are hidden by an empty directory, in a mount namespace of its
 * own. 77, skipped, where that cannot be done.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SKIPPED 77

static int refuse(unsigned nr)
{
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter,
                                       .filter = (struct sock_filter *)filter};
    /* Without the rights of root it takes this; root must be able to become another user. */
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) return -1;
    /* Never without its effect. */
    if (syscall((long)nr, 0, 0, 0, 0) != -1 || errno != ENOSYS) {
        errno = EPROTO;
        return -1;
    }
    return 0;
}

static int hide_groups(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    return mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_RDONLY, "mode=755");
}

int main(int argc, char **argv)
{
    int rc = -1;
    if (argc < 3) return 2;
    if (strcmp(argv[1], "openat2") == 0) rc = refuse(SYS_openat2);
    if (strcmp(argv[1], "landlock") == 0) rc = refuse(SYS_landlock_create_ruleset);
    if (strcmp(argv[1], "cgroups") == 0) rc = hide_groups();
    if (rc < 0) {
        printf("SKIP without %s: %s\n", argv[1], strerror(errno));
        return SKIPPED;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
