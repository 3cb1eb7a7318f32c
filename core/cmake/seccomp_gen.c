/*
 * Build-time tool: writes the sandbox's seccomp filter as C arrays, one per architecture.
 *
 * libseccomp knows the numbers of the system calls. The program is a binary search over runs of
 * neighbouring numbers with the same decision, which is a third of what a rule per call would be:
 * the kernel compiles and evaluates the filter for every sandbox. Calls whose arguments decide
 * have a few instructions of their own as leaves. Those compare only the low 32 bits of an
 * argument, because that is what the kernel looks at (a comparison of 64 bits was the hole of
 * CVE-2019-10063).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "seccomp_table.h"

#define MAX_INSTRUCTIONS 1024
#define MAX_CALLS 600 /* above the highest number of either architecture */
#define X32_BIT 0x40000000u

struct program {
    struct sock_filter code[MAX_INSTRUCTIONS];
    size_t len;
};

struct target {
    uint32_t scmp_arch, audit_arch;
    const char *macro, *name;
};

static const struct target targets[] = {
    {SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, "__x86_64__", "x86-64"},
    {SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, "__aarch64__", "arm64"},
};

#define CLONE_NEW_ANY                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */)

/* The bit that devices of both kinds have, and FIFOs, sockets and files have not. */
#define DEVICES                                                                                    \
    "the kernel lets everybody make the empty device, which overlays take for a removed file; of " \
    "Landlock's versions some look at it and some do not"

/* Calls that look at an argument. Two rows of one call follow each other: the second decides what
 * the first would allow. */
static const struct narrowed {
    const char *name;
    int argument;
    enum { REFUSE_VALUES, REFUSE_OTHERS, REFUSE_BITS } how;
    int os_error;
    const char *reason;
    int count;
    uint32_t values[4];
} narrowed[] = {
    {"ioctl",
     1,
     REFUSE_VALUES,
     EPERM,
     "input injection into a terminal, console functions",
     3,
     {TIOCSTI, TIOCLINUX, TIOCCONS}},
    {"fcntl",
     1,
     REFUSE_VALUES,
     EINVAL,
     "leases would hold up whoever opens a mounted file on the host; directory signals are their "
     "kin",
     2,
     {F_SETLEASE, F_NOTIFY}},
    {"ptrace",
     0,
     REFUSE_VALUES,
     EPERM,
     "taking hold of a process that has not asked for it: a command that is being started shares "
     "process 1's memory",
     2,
     {PTRACE_ATTACH, PTRACE_SEIZE}},
    {"clone", 0, REFUSE_BITS, EPERM, "new namespaces, as unshare", 1, {CLONE_NEW_ANY}},
    {"socket",
     0,
     REFUSE_OTHERS,
     EAFNOSUPPORT,
     "AF_ALG wrote to page caches, AF_VSOCK reaches the hypervisor, AF_NETLINK and AF_PACKET "
     "configure the kernel",
     3,
     {AF_UNIX, AF_INET, AF_INET6}},
    {"socket",
     2,
     REFUSE_OTHERS,
     EPROTONOSUPPORT,
     "SCTP, MPTCP, raw protocols: much code that commands do not need",
     4,
     {0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP}},
    {"prlimit64", 0, REFUSE_OTHERS, EPERM, "limits of other processes", 1, {0}},
    {"socketpair", 0, REFUSE_OTHERS, EAFNOSUPPORT, "as socket", 1, {AF_UNIX}},
    {"mknod", 1, REFUSE_BITS, EPERM, DEVICES, 1, {S_IFCHR}},
    {"mknodat", 2, REFUSE_BITS, EPERM, DEVICES, 1, {S_IFCHR}},
    {"personality",
     0,
     REFUSE_OTHERS,
     EPERM,
     "only asking and the default; others weaken address randomisation",
     2,
     {0xffffffff, 0}},
};

/* What is decided for one number: a return value, or a call of `narrowed` by index. */
struct decision {
    uint32_t action;
    int narrowed; /* -1: the action */
};

struct run {
    uint32_t first;
    struct decision decision;
};

static _Noreturn void die(const char *what, const char *detail)
{
    fprintf(stderr, "seccomp_gen: %s: %s\n", what, detail);
    exit(1);
}

/* ---- the table, by number ---- */

static void decide_row(struct decision *calls, uint32_t arch, const struct row *row)
{
    char name[64];
    size_t len;
    for (const char *rest = row->name; *rest != '\0'; rest += len + (rest[len] == ' ')) {
        len = strcspn(rest, " ");
        if (len >= sizeof name) die("name too long", rest);
        memcpy(name, rest, len);
        name[len] = '\0';
        int nr = seccomp_syscall_resolve_name_arch(arch, name);
        if (nr == __NR_SCMP_ERROR && row->action == ALLOW) die("unknown system call", name);
        if (nr < 0) continue; /* not on this architecture, or newer than libseccomp */
        if (nr >= MAX_CALLS) die("number too large", name);
        if (row->action == ALLOW) calls[nr].action = SECCOMP_RET_ALLOW;
        if (row->action == DENY) calls[nr].action = SECCOMP_RET_ERRNO | EPERM;
    }
}

static void decide_all(struct decision *calls, uint32_t arch)
{
    for (size_t nr = 0; nr < MAX_CALLS; nr++) {
        calls[nr] = (struct decision){.action = SECCOMP_RET_ERRNO | ENOSYS, .narrowed = -1};
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        decide_row(calls, arch, &rows[i]);
    }
    for (size_t i = 0; i < sizeof narrowed / sizeof *narrowed; i++) {
        int nr = seccomp_syscall_resolve_name_arch(arch, narrowed[i].name);
        if (nr < 0 && nr != __NR_SCMP_ERROR) continue; /* not on this architecture */
        if (nr < 0 || nr >= MAX_CALLS || calls[nr].action != SECCOMP_RET_ALLOW) {
            die("narrowed, but not allowed", narrowed[i].name);
        }
        if (calls[nr].narrowed < 0) calls[nr].narrowed = (int)i;
    }
}

static size_t make_runs(struct run *runs, const struct decision *calls)
{
    size_t count = 0;
    for (uint32_t nr = 0; nr < MAX_CALLS; nr++) {
        const struct decision *last = count == 0 ? NULL : &runs[count - 1].decision;
        if (last != NULL && last->narrowed < 0 && calls[nr].narrowed < 0 &&
            last->action == calls[nr].action) {
            continue;
        }
        runs[count++] = (struct run){.first = nr, .decision = calls[nr]};
    }
    /* Numbers of the x32 ABI, and whatever is above them. */
    runs[count++] = (struct run){.first = X32_BIT,
                                 .decision = {.action = SECCOMP_RET_KILL_PROCESS, .narrowed = -1}};
    return count;
}

/* ---- the program ---- */

static void emit(struct program *out, struct sock_filter instruction)
{
    if (out->len == MAX_INSTRUCTIONS) die("emit", "program too long");
    out->code[out->len++] = instruction;
}

#define LOAD(field) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action)
#define IF(op, value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | op | BPF_K, value, yes, no)

/* The second row of the same call. */
static const struct narrowed *more_of(const struct narrowed *call)
{
    const struct narrowed *next = call + 1, *end = narrowed + sizeof narrowed / sizeof *narrowed;
    return next < end && strcmp(next->name, call->name) == 0 ? next : NULL;
}

static void emit_narrowed(struct program *out, const struct narrowed *call)
{
    int count = call->count;
    emit(out, LOAD(args[call->argument])); /* little-endian: the low word comes first */
    for (int i = 0; i < count; i++) {
        if (call->how == REFUSE_BITS) {
            emit(out, IF(BPF_JSET, call->values[i], 1, 0));
        } else { /* to the second return, or on to the next value and then the first */
            emit(out, IF(BPF_JEQ, call->values[i], (uint8_t)(count - i), 0));
        }
    }
    uint32_t refuse = SECCOMP_RET_ERRNO | (uint32_t)call->os_error;
    emit(out, RETURN(call->how == REFUSE_OTHERS ? refuse : SECCOMP_RET_ALLOW));
    if (more_of(call) != NULL) {
        if (call->how != REFUSE_OTHERS) die("cannot be followed by another row", call->name);
        emit_narrowed(out, more_of(call));
        return;
    }
    emit(out, RETURN(call->how == REFUSE_OTHERS ? SECCOMP_RET_ALLOW : refuse));
}

static void emit_search(struct program *out, const struct run *runs, size_t count)
{
    if (count == 1) {
        const struct decision *d = &runs[0].decision;
        if (d->narrowed >= 0) {
            emit_narrowed(out, &narrowed[d->narrowed]);
        } else {
            emit(out, RETURN(d->action));
        }
        return;
    }
    size_t half = count / 2, at = out->len;
    emit(out, IF(BPF_JGE, runs[half].first, 0, 0));
    emit_search(out, runs, half);
    size_t distance = out->len - at - 1;
    if (distance > 255) die("emit", "a jump is too far");
    out->code[at].jt = (uint8_t)distance;
    emit_search(out, runs + half, count - half);
}

static void make_program(struct program *out, const struct target *target)
{
    static struct decision calls[MAX_CALLS];
    static struct run runs[MAX_CALLS + 1];
    decide_all(calls, target->scmp_arch);
    size_t count = make_runs(runs, calls);
    out->len = 0;
    emit(out, LOAD(arch));
    emit(out, IF(BPF_JEQ, target->audit_arch, 1, 0));
    emit(out, RETURN(SECCOMP_RET_KILL_PROCESS)); /* int 0x80 and other foreign ABIs */
    emit(out, LOAD(nr));
    emit_search(out, runs, count);
}

/* seccomp_gen OUTPUT */
int main(int argc, char **argv)
{
    if (argc != 2 || freopen(argv[1], "w", stdout) == NULL) {
        return fprintf(stderr, "usage: seccomp_gen OUTPUT\n"), 2;
    }
    printf("/* Made at build time by seccomp_gen from seccomp_table.h. */\n"
           "#include <linux/filter.h>\n");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        static struct program program;
        make_program(&program, &targets[i]);
        printf("#if defined(%s)\nstatic const struct sock_filter guest_filter[] = {\n",
               targets[i].macro);
        for (size_t k = 0; k < program.len; k++) {
            const struct sock_filter *f = &program.code[k];
            printf("    {0x%02x, %u, %u, 0x%08x},\n", f->code, f->jt, f->jf, f->k);
        }
        printf("};\n#endif\n");
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
