/* Other processes and the kernel's other doors. See probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* ---- other processes ---- */

static pid_t sleeping_child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) pause();
        _exit(0);
    }
    return pid;
}
static int trace(void)
{
    pid_t pid = sleeping_child();
    int result = answer(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
    kill(pid, SIGKILL);
    return result;
}
static int read_memory(void)
{
    static char here[8], there[8];
    struct iovec a = {here, 8}, b = {there, 8};
    pid_t pid = sleeping_child();
    int result = answer(process_vm_readv(pid, &a, 1, &b, 1, 0));
    kill(pid, SIGKILL);
    return result;
}
static int take_fd(void)
{
    pid_t pid = sleeping_child();
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int result = fd < 0 ? -errno : answer(syscall(SYS_pidfd_getfd, fd, 0, 0));
    kill(pid, SIGKILL);
    return result;
}
/* Process 1; outside, where the machine's own is not to be touched, one that stands for it. */
static const char *of_init(const char *name)
{
    static char path[64];
    int pid = strcmp(parameter("init"), "1") == 0 ? 1 : sleeping_child();
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return path;
}
static int init_environ(void)
{
    return can_open(of_init("environ"), O_RDONLY);
}
static int init_memory(void)
{
    return can_open(of_init("mem"), O_RDWR);
}
static int init_exe(void)
{
    char path[256];
    return answer(readlink(of_init("exe"), path, sizeof path));
}
static int init_root(void)
{
    return answer(access(of_init("root/etc"), F_OK));
}
static int init_fds(void)
{
    return answer(access(of_init("fd/0"), F_OK));
}
static int init_maps(void)
{
    return can_read(of_init("maps"));
}

/* ---- the kernel's other doors ---- */

static int key_ring(void)
{
    return answer(syscall(SYS_keyctl, 0, -2, 1));
}
static int add_a_key(void)
{
    return answer(syscall(SYS_add_key, "user", "probe", "x", 1, -2));
}
static int bpf_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return answer(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}
static int io_uring(void)
{
    struct io_uring_params params = {0};
    return answer(syscall(SYS_io_uring_setup, 4, &params));
}
static int perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1};
    return answer(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}
static int user_fault(void)
{
    return answer(syscall(SYS_userfaultfd, 1 /* user mode only */));
}
static int fanotify(void)
{
    return answer(syscall(SYS_fanotify_init, 0x200, O_RDONLY));
}
static int low_personality(void)
{
    return answer(personality(ADDR_NO_RANDOMIZE));
}
static int read_log(void)
{
    return answer(syscall(SYS_syslog, 10, NULL, 0));
}
static int restart(void)
{
    return answer_or(syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL);
}
static int load_module(void)
{
    return answer_or(syscall(SYS_init_module, NULL, 0, ""), ENOEXEC);
}
static int set_clock(void)
{
    struct timespec invalid = {.tv_nsec = 2000000000};
    return answer_or(syscall(SYS_clock_settime, CLOCK_REALTIME, &invalid), EINVAL);
}
static int kexec(void)
{
    return answer_or(syscall(SYS_kexec_load, 0, 100, NULL, 0), EINVAL);
}
static int swap_on(void)
{
    return answer_or(syscall(SYS_swapon, "/nonexistent", 0), ENOENT);
}
static int accounting(void)
{
    return answer_or(syscall(SYS_acct, "/nonexistent"), ENOENT);
}
static int terminal_input(void)
{
    return answer_or(ioctl(0, TIOCSTI, "x"), ENOTTY);
}
static int terminal_input_high(void)
{
    return answer_or(syscall(SYS_ioctl, 0, TIOCSTI | 1ull << 32, "x"), ENOTTY);
}
#if defined(__x86_64__)
static int foreign_abi(void)
{
    long pid;
    __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20 /* getpid of i386 */) : "memory");
    return pid == getpid() ? 0 : -ENOSYS;
}
static int x32_abi(void)
{
    return answer(syscall(0x40000000 | SYS_getpid));
}
#endif

const struct probe probes_kernel[] = {
    PROBE(trace, DENIED),           PROBE(read_memory, DENIED),
    PROBE(take_fd, DENIED),         PROBE(init_environ, DENIED),
    PROBE(init_memory, DENIED),     PROBE(init_exe, DENIED),
    PROBE(init_root, DENIED),       PROBE(init_fds, DENIED),
    PROBE(init_maps, DENIED),       PROBE(key_ring, DENIED),
    PROBE(add_a_key, DENIED),       PROBE(bpf_map, DENIED),
    PROBE(io_uring, DENIED),        PROBE(perf, DENIED),
    PROBE(user_fault, DENIED),      PROBE(fanotify, DENIED),
    PROBE(low_personality, DENIED), PROBE(read_log, DENIED),
    PROBE(restart, DENIED),         PROBE(load_module, DENIED),
    PROBE(set_clock, DENIED),       PROBE(kexec, DENIED),
    PROBE(swap_on, DENIED),         PROBE(accounting, DENIED),
    PROBE(terminal_input, DENIED),  PROBE(terminal_input_high, DENIED),
#if defined(__x86_64__)
    PROBE(foreign_abi, DENIED),     PROBE(x32_abi, DENIED),
#endif
    {NULL, NULL, DENIED},
};
