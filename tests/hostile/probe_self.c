/*
 * What a program does to itself, and what it takes until there is no more:
 *
 *     probe self flags|filters|landlock    everything that a process may set of its own
 *     probe fill KIND                      as many as it gets; prints how many and why no more,
 *                                          makes the folder FILLED and keeps them while it is there
 *
 * None of it is forbidden. It must concern nobody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define FILLED "/tmp/filled"

/* ---- its own flags, filters, rules ---- */

static int set_flags(void)
{
    static const char name[] = ") S 1 \033[31m\r\n\x01"; /* as a child of process 1 looks */
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    prctl(PR_SET_KEEPCAPS, 1);
    prctl(PR_SET_SECUREBITS, 0);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_THP_DISABLE, 1);
    prctl(PR_SET_NAME, name);
    for (int option = 35; option < 80; option++) { /* and those that nobody has thought of */
        if (option != PR_SET_NO_NEW_PRIVS) prctl(option, 0, 0, 0, 0);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) return 1;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 2;
    printf("set\n");
    fflush(stdout);
    sleep(2); /* somebody looks at the list of processes */
    return 0;
}

/* Every call of the process from now on fails, but for its end. */
static int filter_everything(unsigned flags)
{
    static const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter,
                                       .filter = (struct sock_filter *)filter};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int set_filters(void)
{
    static const unsigned flags[] = {0, SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_FILTER_FLAG_LOG,
                                     SECCOMP_FILTER_FLAG_NEW_LISTENER,
                                     SECCOMP_FILTER_FLAG_SPEC_ALLOW};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (filter_everything(flags[i]) < 0) _exit(1);
            _exit(syscall(SYS_getppid) == -1 ? 0 : 2); /* it holds for this process */
        }
        int status = 0;
        waitpid(pid, &status, 0);
        printf("%u %d\n", flags[i], WEXITSTATUS(status));
    }
    return 0;
}

/* Layer upon layer, until the kernel wants no more. */
static int set_rules(void)
{
    const struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_REMOVE_FILE};
    int count = 0, rc = 0;
    while (rc == 0 && count < 64) {
        int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
        rc = fd < 0 ? -1 : (int)syscall(SYS_landlock_restrict_self, fd, 0);
        if (fd >= 0) close(fd);
        count += rc == 0;
    }
    printf("%d %s\n", count, rc < 0 ? strerrorname_np(errno) : "no end");
    return 0;
}

int self(const char *what)
{
    if (strcmp(what, "flags") == 0) return set_flags();
    if (strcmp(what, "filters") == 0) return set_filters();
    if (strcmp(what, "landlock") == 0) return set_rules();
    return 2;
}

/* ---- as many as it gets; 0, or -1 with errno ---- */

static int take_file(void)
{
    return open("/dev/null", O_RDONLY);
}
static int take_pipe(void)
{
    int fds[2];
    return pipe(fds);
}
static int take_pair(void)
{
    int fds[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}
static int take_event(void)
{
    return eventfd(0, 0);
}
static int take_timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, 0);
}
static int take_epoll(void)
{
    static int last = -1;
    int fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0 && last >= 0) epoll_ctl(fd, EPOLL_CTL_ADD, last, &event); /* nested */
    if (fd >= 0) last = fd;
    return fd;
}
static int take_inotify(void)
{
    int fd = inotify_init1(0);
    return fd < 0 ? -1 : inotify_add_watch(fd, "/tmp", IN_ALL_EVENTS);
}
/* Descriptors that are under way to a socket that nobody reads, and open nowhere else. */
static int take_flying(void)
{
    static int pair[2] = {-1, -1};
    if (pair[0] < 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) < 0) return -1;
    int fds[MOST_SENT];
    for (int i = 0; i < MOST_SENT; i++) {
        fds[i] = open("/dev/null", O_RDONLY);
    }
    int rc = (int)send_descriptors(pair[0], fds, MOST_SENT), why = errno;
    for (int i = 0; i < MOST_SENT; i++) {
        close(fds[i]);
    }
    errno = why;
    return rc;
}

static int take_segment(void)
{
    return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}
static int take_semaphores(void)
{
    return semget(IPC_PRIVATE, 100, IPC_CREAT | 0600);
}
static int take_messages(void)
{
    static int queue = -1;
    static const struct {
        long type;
        char text[1000];
    } message = {.type = 1};
    if (queue < 0 || msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) < 0) {
        queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    }
    return queue;
}
static int take_posix_queue(void)
{
    static int count;
    char name[32];
    snprintf(name, sizeof name, "/probe-%d", count++);
    return (int)mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
}

static void *wait_for_ever(void *ud)
{
    pause();
    return ud;
}
static int take_thread(void)
{
    static pthread_attr_t attr;
    static int ready;
    pthread_t thread;
    if (!ready) {
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 1 << 16);
        ready = 1;
    }
    errno = pthread_create(&thread, &attr, wait_for_ever, NULL);
    return errno == 0 ? 0 : -1;
}
static char stacks[1 << 22];
static int share_memory(void *ud)
{
    (void)ud;
    pause();
    return 0;
}
static int take_sharer(void)
{
    static size_t used;
    used = (used + 4096) % (sizeof stacks - 4096) + 4096;
    return clone(share_memory, stacks + used, CLONE_VM | SIGCHLD, NULL);
}

/* Memory in places where no heap is; each step 4 MiB. */
#define STEP (4 << 20)
static int fill(int fd)
{
    static char bytes[1 << 16];
    memset(bytes, 1, sizeof bytes);
    for (size_t i = 0; fd >= 0 && i < STEP / sizeof bytes; i++) {
        if (write(fd, bytes, sizeof bytes) < 0) return -1;
    }
    return fd < 0 ? -1 : 0;
}
static int take_memory_file(void)
{
    return fill(memfd_create("probe", 0));
}
static int take_shared_file(void)
{
    static int count;
    char name[64];
    snprintf(name, sizeof name, "/dev/shm/probe-%d", count++);
    int fd = open(name, O_CREAT | O_WRONLY, 0600), rc = fill(fd);
    if (fd >= 0) close(fd);
    return rc;
}
static int take_shared_segment(void)
{
    int id = shmget(IPC_PRIVATE, STEP, IPC_CREAT | 0600);
    char *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
    if (at == (void *)-1) return -1;
    memset(at, 1, STEP);
    return 0;
}
static int take_anonymous(void)
{
    char *at =
        mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}
static int take_locked(void)
{
    char *at = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : mlock(at, STEP);
}
static int take_huge(void)
{
    char *at = mmap(NULL, STEP, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? -1 : 0;
}
/* A page table for each two MiB of which one page of a shared one is touched. */
static int take_tables(void)
{
    for (int i = 0; i < STEP / 4096; i++) {
        char *at = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return -1;
        *at = 1;
    }
    return 0;
}
static int take_buffers(void)
{
    int fds[2];
    for (int i = 0; i < STEP >> 16; i++) {
        if (pipe2(fds, O_NONBLOCK) < 0) return -1;
        static char bytes[1 << 16];
        if (write(fds[1], bytes, sizeof bytes) < 0) return -1;
    }
    return 0;
}

static const struct kind {
    const char *name;
    int (*take)(void);
    int most; /* where the kernel has no end to it by itself */
} kinds[] = {
    {"files", take_file, 1 << 20},
    {"pipes", take_pipe, 1 << 20},
    {"pairs", take_pair, 1 << 20},
    {"events", take_event, 1 << 20},
    {"timers", take_timer, 1 << 20},
    {"epolls", take_epoll, 1 << 20},
    {"inotify", take_inotify, 1 << 20},
    {"flying", take_flying, 1 << 16},
    {"segments", take_segment, 1 << 14},
    {"semaphores", take_semaphores, 1 << 14},
    {"messages", take_messages, 1 << 16},
    {"posix_queues", take_posix_queue, 1 << 14},
    {"threads", take_thread, 1 << 16},
    {"sharers", take_sharer, 1 << 16},
    {"memory_files", take_memory_file, 64},
    {"shared_files", take_shared_file, 64},
    {"shared_segments", take_shared_segment, 64},
    {"anonymous", take_anonymous, 64},
    {"locked", take_locked, 64},
    {"huge", take_huge, 64},
    {"tables", take_tables, 64},
    {"buffers", take_buffers, 64},
};

int fill_up(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        int count = 0;
        while (count < kinds[i].most && kinds[i].take() >= 0) {
            count++;
        }
        const char *why = count == kinds[i].most ? "enough" : strerrorname_np(errno);
        dprintf(1, "%d %s\n", count, why);
        mkdir(FILLED, 0755); /* which takes no descriptor */
        for (int round = 0; round < 3000 && access(FILLED, F_OK) == 0; round++) {
            usleep(10000);
        }
        return 0;
    }
    return 2;
}
