/*
 * The compiled seccomp filters of both architectures, run by a small interpreter: what counts is
 * the program that the kernel gets, not the table it was made from.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The generated header holds one array per architecture; here both are wanted. */
#undef __x86_64__
#undef __aarch64__
#define __x86_64__ 1
#define guest_filter filter_x86_64
#include "seccomp_filter.h"
#undef guest_filter
#undef __x86_64__
#define __aarch64__ 1
#define guest_filter filter_arm64
#include "seccomp_filter.h"
#include "suite.h"

/* Numbers of the system calls, x86-64 and arm64; -1: it has none. */
struct call {
    const char *name;
    int nr[2];
};

static const struct {
    const struct sock_filter *code;
    size_t len;
    uint32_t arch;
} filters[] = {
    {filter_x86_64, sizeof filter_x86_64 / sizeof *filter_x86_64, AUDIT_ARCH_X86_64},
    {filter_arm64, sizeof filter_arm64 / sizeof *filter_arm64, AUDIT_ARCH_AARCH64},
};

static uint32_t run(int which, const struct seccomp_data *data)
{
    const struct sock_filter *code = filters[which].code;
    uint32_t a = 0;
    for (size_t pc = 0; pc < filters[which].len; pc++) {
        const struct sock_filter *f = &code[pc];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            ck_assert_uint_le(f->k, sizeof *data - 4);
            memcpy(&a, (const char *)data + f->k, 4);
            break;
        case BPF_ALU | BPF_AND | BPF_K: a &= f->k; break;
        case BPF_JMP | BPF_JA: pc += f->k; break;
        case BPF_JMP | BPF_JEQ | BPF_K: pc += a == f->k ? f->jt : f->jf; break;
        case BPF_JMP | BPF_JGT | BPF_K: pc += a > f->k ? f->jt : f->jf; break;
        case BPF_JMP | BPF_JGE | BPF_K: pc += a >= f->k ? f->jt : f->jf; break;
        case BPF_JMP | BPF_JSET | BPF_K: pc += a & f->k ? f->jt : f->jf; break;
        case BPF_RET | BPF_K: return f->k;
        default: ck_abort_msg("instruction %#x", f->code);
        }
    }
    ck_abort_msg("ran past the end");
    return 0;
}

static uint32_t decide(int which, uint32_t nr, uint64_t arg0, uint64_t arg1)
{
    struct seccomp_data data = {.nr = (int)nr, .arch = filters[which].arch};
    data.args[0] = arg0;
    data.args[1] = arg1;
    return run(which, &data);
}

#define REFUSED(e) (SECCOMP_RET_ERRNO | (e))

START_TEST(foreign_architectures_are_killed)
{
    const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64,
                              AUDIT_ARCH_ARM,  AUDIT_ARCH_PPC64,  0,
                              UINT32_MAX};
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
            if (archs[i] == filters[which].arch) continue;
            for (int nr = 0; nr < 600; nr++) {
                struct seccomp_data data = {.nr = nr, .arch = archs[i]};
                ck_assert_uint_eq(run(which, &data), SECCOMP_RET_KILL_PROCESS);
            }
        }
    }
}
END_TEST

START_TEST(x32_and_odd_numbers_are_never_allowed)
{
    for (uint32_t nr = 0; nr < 1024; nr++) {
        ck_assert_uint_ne(decide(0, nr | 0x40000000, 0, 0), SECCOMP_RET_ALLOW);
    }
    const uint32_t odd[] = {512,        520,        547,        600,        10000,
                            0x3fffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            ck_assert_uint_ne(decide(which, odd[i], 0, 0), SECCOMP_RET_ALLOW);
        }
    }
}
END_TEST

START_TEST(dangerous_calls_are_refused)
{
    static const struct call calls[] = {
        {"mount", {165, 40}},
        {"umount2", {166, 39}},
        {"pivot_root", {155, 41}},
        {"chroot", {161, 51}},
        {"unshare", {272, 97}},
        {"setns", {308, 268}},
        {"open_tree", {428, 428}},
        {"move_mount", {429, 429}},
        {"fsopen", {430, 430}},
        {"mount_setattr", {442, 442}},
        {"process_vm_readv", {310, 270}},
        {"process_vm_writev", {311, 271}},
        {"pidfd_getfd", {438, 438}},
        {"kcmp", {312, 272}},
        {"bpf", {321, 280}},
        {"perf_event_open", {298, 241}},
        {"userfaultfd", {323, 282}},
        {"fanotify_init", {300, 262}},
        {"add_key", {248, 217}},
        {"request_key", {249, 218}},
        {"keyctl", {250, 219}},
        {"open_by_handle_at", {304, 265}},
        {"name_to_handle_at", {303, 264}},
        {"init_module", {175, 105}},
        {"finit_module", {313, 273}},
        {"delete_module", {176, 106}},
        {"kexec_load", {246, 104}},
        {"reboot", {169, 142}},
        {"syslog", {103, 116}},
        {"acct", {163, 89}},
        {"swapon", {167, 224}},
        {"settimeofday", {164, 170}},
        {"clock_settime", {227, 112}},
        {"sethostname", {170, 161}},
        {"quotactl", {179, 60}},
        {"iopl", {172, -1}},
        {"ioperm", {173, -1}},
        {"mbind", {237, 235}},
        {"move_pages", {279, 239}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int which = 0; which < 2; which++) {
            if (calls[i].nr[which] < 0) continue;
            uint32_t answer = decide(which, (uint32_t)calls[i].nr[which], 0, 0);
            ck_assert_msg(answer == REFUSED(EPERM), "%s on %d: %#x", calls[i].name, which, answer);
        }
    }
}
END_TEST

START_TEST(absent_calls_look_absent)
{
    static const struct call calls[] = {
        {"clone3", {435, 435}},
        {"io_uring_setup", {425, 425}},
        {"io_uring_enter", {426, 426}},
        {"io_uring_register", {427, 427}},
        {"memfd_secret", {447, 447}},
        {"modify_ldt", {154, -1}},
        {"uselib", {134, -1}},
        {"a later one", {470, 470}},
        {"one of no kernel", {511, 511}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int which = 0; which < 2; which++) {
            if (calls[i].nr[which] < 0) continue;
            uint32_t answer = decide(which, (uint32_t)calls[i].nr[which], 0, 0);
            ck_assert_msg(answer == REFUSED(ENOSYS), "%s on %d: %#x", calls[i].name, which, answer);
        }
    }
}
END_TEST

START_TEST(ordinary_calls_are_allowed)
{
    static const struct call calls[] = {
        {"read", {0, 63}},           {"write", {1, 64}},        {"openat", {257, 56}},
        {"close", {3, 57}},          {"mmap", {9, 222}},        {"futex", {202, 98}},
        {"execve", {59, 221}},       {"wait4", {61, 260}},      {"exit_group", {231, 94}},
        {"ppoll", {271, 73}},        {"getrandom", {318, 278}}, {"statx", {332, 291}},
        {"rt_sigreturn", {15, 139}}, {"kill", {62, 129}},       {"setresuid", {117, 147}},
        {"close_range", {436, 436}}, {"rseq", {334, 293}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int which = 0; which < 2; which++) {
            uint32_t answer = decide(which, (uint32_t)calls[i].nr[which], UINT64_MAX, UINT64_MAX);
            ck_assert_msg(answer == SECCOMP_RET_ALLOW, "%s on %d: %#x", calls[i].name, which,
                          answer);
        }
    }
}
END_TEST

/* Arguments whose upper half the kernel ignores must not slip through with it set. */
static const uint64_t upper[] = {0, 1ull << 32, 0xdeadbeefull << 32, 0xffffffffull << 32};

START_TEST(terminal_injection)
{
    const int ioctl_nr[] = {16, 29};
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < 4; i++) {
            uint32_t nr = (uint32_t)ioctl_nr[which];
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | TIOCSTI), REFUSED(EPERM));
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | TIOCLINUX), REFUSED(EPERM));
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | TIOCCONS), REFUSED(EPERM));
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | TIOCGWINSZ), SECCOMP_RET_ALLOW);
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | FIONREAD), SECCOMP_RET_ALLOW);
        }
    }
}
END_TEST

START_TEST(leases)
{
    const int fcntl_nr[] = {72, 25};
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < 4; i++) {
            uint32_t nr = (uint32_t)fcntl_nr[which];
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | F_SETLEASE), REFUSED(EINVAL));
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | F_NOTIFY), REFUSED(EINVAL));
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | F_GETLEASE), SECCOMP_RET_ALLOW);
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | F_SETLK), SECCOMP_RET_ALLOW);
            ck_assert_uint_eq(decide(which, nr, 0, upper[i] | F_SETFL), SECCOMP_RET_ALLOW);
        }
    }
}
END_TEST

START_TEST(namespaces_by_clone)
{
    const int clone_nr[] = {56, 220};
    const uint32_t flags[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,    CLONE_NEWUSER,
                              CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP, 0x80};
    for (int which = 0; which < 2; which++) {
        uint32_t nr = (uint32_t)clone_nr[which];
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
            for (size_t k = 0; k < 4; k++) {
                ck_assert_uint_eq(decide(which, nr, upper[k] | flags[i], 0), REFUSED(EPERM));
                ck_assert_uint_eq(decide(which, nr, upper[k] | flags[i] | CLONE_VM | 17, 0),
                                  REFUSED(EPERM));
            }
        }
        uint32_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                          CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
        ck_assert_uint_eq(decide(which, nr, thread, 0), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(decide(which, nr, 17, 0), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(decide(which, nr, CLONE_VM | CLONE_VFORK | 17, 0), SECCOMP_RET_ALLOW);
    }
}
END_TEST

START_TEST(socket_families)
{
    const int socket_nr[] = {41, 198}, pair_nr[] = {53, 199};
    for (int which = 0; which < 2; which++) {
        for (uint64_t family = 0; family < 64; family++) {
            int fine = family == AF_UNIX || family == AF_INET || family == AF_INET6;
            for (size_t k = 0; k < 4; k++) {
                ck_assert_uint_eq(decide(which, (uint32_t)socket_nr[which], upper[k] | family, 0),
                                  fine ? SECCOMP_RET_ALLOW : REFUSED(EAFNOSUPPORT));
                ck_assert_uint_eq(decide(which, (uint32_t)pair_nr[which], upper[k] | family, 0),
                                  family == AF_UNIX ? SECCOMP_RET_ALLOW : REFUSED(EAFNOSUPPORT));
            }
        }
    }
}
END_TEST

START_TEST(socket_protocols)
{
    const uint32_t nr[] = {41, 198};
    const uint64_t fine[] = {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};
    for (int which = 0; which < 2; which++) {
        for (uint64_t protocol = 0; protocol < 300; protocol++) {
            int allowed = 0;
            for (size_t i = 0; i < 4; i++) {
                if (fine[i] == protocol) allowed = 1;
            }
            struct seccomp_data data = {.nr = (int)nr[which], .arch = filters[which].arch};
            data.args[0] = AF_INET;
            data.args[1] = SOCK_STREAM;
            for (size_t k = 0; k < 4; k++) {
                data.args[2] = upper[k] | protocol;
                ck_assert_uint_eq(run(which, &data),
                                  allowed ? SECCOMP_RET_ALLOW : REFUSED(EPROTONOSUPPORT));
            }
        }
    }
}
END_TEST

START_TEST(tracing)
{
    const uint32_t nr[] = {101, 117};
    const uint32_t requests[] = {PTRACE_TRACEME,   PTRACE_PEEKDATA,   PTRACE_POKETEXT, PTRACE_CONT,
                                 PTRACE_GETREGSET, PTRACE_SETOPTIONS, PTRACE_DETACH};
    for (int which = 0; which < 2; which++) {
        for (size_t k = 0; k < 4; k++) {
            for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
                ck_assert_uint_eq(decide(which, nr[which], upper[k] | requests[i], 0),
                                  SECCOMP_RET_ALLOW);
            }
            ck_assert_uint_eq(decide(which, nr[which], upper[k] | PTRACE_ATTACH, 0),
                              REFUSED(EPERM));
            ck_assert_uint_eq(decide(which, nr[which], upper[k] | PTRACE_SEIZE, 0), REFUSED(EPERM));
        }
    }
}
END_TEST

START_TEST(limits_of_others)
{
    const uint32_t nr[] = {302, 261}, syncfs_nr[] = {306, 267};
    for (int which = 0; which < 2; which++) {
        for (size_t k = 0; k < 4; k++) {
            ck_assert_uint_eq(decide(which, nr[which], upper[k], 7), SECCOMP_RET_ALLOW);
            ck_assert_uint_eq(decide(which, nr[which], upper[k] | 1, 7), REFUSED(EPERM));
            ck_assert_uint_eq(decide(which, nr[which], upper[k] | 0xffffffff, 7), REFUSED(EPERM));
        }
        ck_assert_uint_eq(decide(which, syncfs_nr[which], 3, 0), REFUSED(EPERM));
    }
}
END_TEST

START_TEST(personalities)
{
    const int nr[] = {135, 92};
    for (int which = 0; which < 2; which++) {
        ck_assert_uint_eq(decide(which, (uint32_t)nr[which], 0xffffffff, 0), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(decide(which, (uint32_t)nr[which], 0, 0), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(decide(which, (uint32_t)nr[which], 0x0040000, 0), REFUSED(EPERM));
        ck_assert_uint_eq(decide(which, (uint32_t)nr[which], 8, 0), REFUSED(EPERM));
    }
}
END_TEST

START_TEST(no_devices_are_made)
{
    const uint32_t devices[] = {S_IFCHR, S_IFCHR | 0600, S_IFBLK | 0666};
    const uint32_t others[] = {0, 0644, S_IFREG | 0600, S_IFIFO | 0600, S_IFSOCK | 0777};
    const uint32_t mknodat_nr[] = {259, 33};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        ck_assert_uint_eq(decide(0, 133, 0, devices[i]), REFUSED(EPERM));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_uint_eq(decide(0, 133, 0, others[i]), SECCOMP_RET_ALLOW);
    }
    for (int which = 0; which < 2; which++) {
        struct seccomp_data data = {.nr = (int)mknodat_nr[which], .arch = filters[which].arch};
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
            data.args[2] = devices[i];
            ck_assert_uint_eq(run(which, &data), REFUSED(EPERM));
        }
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            data.args[2] = others[i];
            ck_assert_uint_eq(run(which, &data), SECCOMP_RET_ALLOW);
        }
    }
}
END_TEST

SUITE_MAIN("seccomp", NULL, NULL, foreign_architectures_are_killed,
           x32_and_odd_numbers_are_never_allowed, dangerous_calls_are_refused,
           absent_calls_look_absent, ordinary_calls_are_allowed, leases, terminal_injection,
           namespaces_by_clone, socket_families, socket_protocols, tracing, limits_of_others,
           personalities, no_devices_are_made)
