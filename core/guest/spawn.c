/* From the supervisor's child to the command. Borrowed memory: system calls and local variables
 * only. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include "groups.h"
#include "isolate.h"
#include "reaper.h"
#include "sys.h"

static const char *path_of(const char **envp)
{
    for (; *envp != NULL; envp++) {
        if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
    }
    return "/usr/local/bin:/usr/bin:/bin";
}

/* A program for another processor, say, has a NUL in its first bytes, as shells know, too. */
static bool is_text(const char *path)
{
    char first[128];
    int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    long len = fd < 0 ? 0 : sys_read(fd, first, sizeof first);
    if (fd >= 0) sys_close(fd);
    return len <= 0 || memchr(first, 0, (size_t)len) == NULL;
}

/* Returns only on failure. A text file without #! is run by /bin/sh, as execvp does. */
static int try_exec(struct reaper *reaper, const char *path)
{
    const char **argv = reaper->command.argv;
    int error = (int)-SYS3(SYS_execve, path, argv, reaper->command.envp);
    if (error != ENOEXEC || !is_text(path)) return error;
    const char *first = argv[0];
    argv[-1] = "/bin/sh";
    argv[0] = path;
    SYS3(SYS_execve, "/bin/sh", argv - 1, reaper->command.envp);
    argv[0] = first;
    return ENOEXEC;
}

static int search_and_exec(struct reaper *reaper)
{
    const char *name = reaper->command.argv[0];
    if (name[0] == '\0') return ENOENT;
    if (strchr(name, '/') != NULL) return try_exec(reaper, name);
    size_t name_len = strlen(name);
    int error = ENOENT;
    for (const char *dir = path_of(reaper->command.envp); dir != NULL;) {
        const char *end = strchr(dir, ':');
        size_t len = end == NULL ? strlen(dir) : (size_t)(end - dir);
        char path[BC_FRAME_MAX_PATH];
        if (len + 1 + name_len + 1 <= sizeof path) {
            memcpy(path, dir, len);
            if (len > 0) path[len++] = '/';
            memcpy(path + len, name, name_len + 1);
            int this_error = try_exec(reaper, path);
            if (this_error != ENOENT && this_error != ENOTDIR && this_error != EACCES) {
                return this_error;
            }
            if (this_error == EACCES) error = EACCES; /* the most telling answer */
        }
        dir = end == NULL ? NULL : end + 1;
    }
    return error;
}

/* Process 1 may have more descriptors open than the usual soft limit, which is what programs
 * expect: some use select, some close every number up to it. */
#define SOFT_OPEN_FILES 1024

static long lower(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    long rc = SYS4(SYS_prlimit64, 0, resource, NULL, &limit);
    if (rc < 0) return rc;
    if (limit.rlim_max > hard) limit.rlim_max = hard;
    if (limit.rlim_cur > soft) limit.rlim_cur = soft;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return SYS4(SYS_prlimit64, 0, resource, &limit, NULL);
}

/* The processor time of a single process, should the watch over its whole tree be late: a second
 * more than the tree may have. One that ignores the first signal is killed another second later. */
static long set_limits(const struct command *command)
{
    uint64_t files = command->open_files;
    uint64_t soft_files = files != 0 && files < SOFT_OPEN_FILES ? files : SOFT_OPEN_FILES;
    long rc = lower(RLIMIT_NOFILE, soft_files, files != 0 ? files : RLIM_INFINITY);
    if (rc >= 0 && command->processes != 0) {
        rc = lower(RLIMIT_NPROC, command->processes, command->processes);
    }
    if (rc >= 0 && command->cpu_seconds != 0) {
        rc = lower(RLIMIT_CPU, command->cpu_seconds + 1, command->cpu_seconds + 2);
    }
    return rc;
}

static long enter_groups(const int *files)
{
    long rc = 0;
    for (int i = 0; files != NULL && i < HIERARCHIES && rc >= 0; i++) {
        if (files[i] >= 0) rc = sys_write(files[i], "0", 1);
    }
    return rc;
}

/* A filter of the command's own, on top of the sandbox's: foreign ABIs are killed by that one. */
static long forbid_network(void)
{
#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define IF(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skip, 0)
    static const struct sock_filter filter[] = {
        LOAD(nr),
        UNLESS(SYS_socket, 3),
        LOAD(args), /* its low half, little-endian */
        IF(AF_INET, 2),
        IF(AF_INET6, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter,
                                       .filter = (struct sock_filter *)filter};
    return SYS3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int prepare(const struct command *command)
{
    long done = enter_groups(__atomic_load_n(&command->enter, __ATOMIC_ACQUIRE));
    if (done < 0) return (int)-done;
    if (command->change_user) {
        long rc = SYS3(SYS_setresgid, SANDBOX_UID, SANDBOX_UID, SANDBOX_UID);
        if (rc == 0) rc = SYS3(SYS_setresuid, SANDBOX_UID, SANDBOX_UID, SANDBOX_UID);
        if (rc < 0) return (int)-rc;
        /* The change of user reset it, for the memory that process 1 shares. */
        rc = sys_prctl(PR_SET_DUMPABLE, 0);
        if (rc < 0) return (int)-rc;
    }
    done = set_limits(command);
    if (done < 0) return (int)-done;
    SYS1(SYS_setsid, 0);
    for (int i = 0; i < 3; i++) {
        long rc = sys_dup3(command->fds[i], i, 0);
        if (rc < 0) return (int)-rc;
    }
    if (command->terminal) {
        long rc = SYS3(SYS_ioctl, 0, TIOCSCTTY, 0);
        if (rc < 0) return (int)-rc;
    }
    done = sys_close_range(3, ~0U, 0);
    if (done >= 0 && command->network_off) done = forbid_network();
    if (done < 0) return (int)-done;
    const sys_sigset none = 0;
    sys_sigprocmask(SIG_SETMASK, &none);
    return 0;
}

int spawn_main(void *argument)
{
    struct reaper *reaper = argument;
    int error = prepare(&reaper->command);
    if (error == 0) {
        error = (int)-SYS1(SYS_chdir, reaper->command.cwd);
        if (error != 0) reaper->spawn_cwd = 1;
    }
    if (error == 0) error = search_and_exec(reaper);
    reaper->spawn_errno = error;
    sys_exit(127);
}
