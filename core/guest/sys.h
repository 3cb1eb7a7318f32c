/*
 * System calls that return -errno and touch no errno.
 *
 * Process 1 shares its memory with the supervisors of running commands (CLONE_VM), which share
 * its thread-local storage too. libc's errno would be theirs as much as its own, so everything
 * that runs after the sandbox is set up calls the kernel through this header, and uses libc only
 * for what keeps no state (memcpy) or is used by process 1 alone (malloc).
 */
#ifndef GUEST_SYS_H
#define GUEST_SYS_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#if defined(BARCHAN_FAKE_SYSTEM) /* tests/fuzz: no system call is made */
long sys_call6(long nr, long a, long b, long c, long d, long e, long f);
#elif defined(__x86_64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the guest knows x86-64 and arm64"
#endif

#define SYS6(nr, a, b, c, d, e, f) \
    sys_call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define SYS5(nr, a, b, c, d, e) SYS6(nr, a, b, c, d, e, 0)
#define SYS4(nr, a, b, c, d) SYS6(nr, a, b, c, d, 0, 0)
#define SYS3(nr, a, b, c) SYS6(nr, a, b, c, 0, 0, 0)
#define SYS2(nr, a, b) SYS6(nr, a, b, 0, 0, 0, 0)
#define SYS1(nr, a) SYS6(nr, a, 0, 0, 0, 0, 0)

/* The kernel's signal sets have 64 bits on both architectures. */
typedef uint64_t sys_sigset;
#define SYS_SIGSET_OF(sig) ((sys_sigset)1 << ((sig)-1))

static inline long sys_read(int fd, void *buffer, size_t len)
{
    return SYS3(SYS_read, fd, buffer, len);
}

static inline long sys_write(int fd, const void *buffer, size_t len)
{
    return SYS3(SYS_write, fd, buffer, len);
}

static inline long sys_send(int fd, const void *buffer, size_t len, int flags)
{
    return SYS6(SYS_sendto, fd, buffer, len, flags, 0, 0);
}

static inline long sys_close(int fd)
{
    return SYS1(SYS_close, fd);
}

static inline long sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return SYS3(SYS_close_range, first, last, flags);
}

static inline long sys_openat(int dir, const char *path, int flags, unsigned mode)
{
    return SYS4(SYS_openat, dir, path, flags, mode);
}

static inline long sys_pipe2(int fds[2], int flags)
{
    return SYS2(SYS_pipe2, fds, flags);
}

static inline long sys_dup3(int from, int to, int flags)
{
    return SYS3(SYS_dup3, from, to, flags);
}

static inline long sys_fcntl(int fd, int command, long argument)
{
    return SYS3(SYS_fcntl, fd, command, argument);
}

/* Negative: without limit. */
static inline long sys_poll(struct pollfd *fds, unsigned count, int64_t limit_ns)
{
    struct timespec limit = {limit_ns / 1000000000, limit_ns % 1000000000};
    return SYS5(SYS_ppoll, fds, count, limit_ns < 0 ? NULL : &limit, NULL, 0);
}

static inline long sys_kill(int pid, int sig)
{
    return SYS2(SYS_kill, pid, sig);
}

static inline long sys_wait4(int pid, int *status, int options, struct rusage *usage)
{
    return SYS4(SYS_wait4, pid, status, options, usage);
}

static inline long sys_sigprocmask(int how, const sys_sigset *set)
{
    return SYS4(SYS_rt_sigprocmask, how, set, NULL, sizeof *set);
}

/* Waits for one of the signals; NULL: without limit. */
static inline long sys_sigtimedwait(const sys_sigset *set, const struct timespec *limit)
{
    return SYS4(SYS_rt_sigtimedwait, set, NULL, limit, sizeof *set);
}

static inline long sys_signalfd(const sys_sigset *set, int flags)
{
    return SYS4(SYS_signalfd4, -1, set, sizeof *set, flags);
}

static inline long sys_prctl(int option, unsigned long a)
{
    return SYS5(SYS_prctl, option, a, 0, 0, 0);
}

static inline int64_t sys_boot_us(void)
{
    struct timespec ts = {0};
    SYS2(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline _Noreturn void sys_exit(int code)
{
    for (;;) {
        SYS1(SYS_exit_group, code);
    }
}

#endif
