/*
 * Build-time tool: writes the sandbox's seccomp filter as C arrays, one per architecture.
 *
 * libseccomp turns the table into a binary search; in front of it stand a few instructions for
 * the calls whose arguments decide. They compare only the low 32 bits of an argument, because
 * that is what the kernel looks at (a comparison of 64 bits was the hole of CVE-2019-10063).
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "seccomp_table.h"

#define MAX_INSTRUCTIONS 4096

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

static _Noreturn void die(const char *what, const char *detail)
{
    fprintf(stderr, "seccomp_gen: %s: %s\n", what, detail);
    exit(1);
}

static void emit(struct program *out, struct sock_filter instruction)
{
    if (out->len == MAX_INSTRUCTIONS) die("emit", "program too long");
    out->code[out->len++] = instruction;
}

#define LOAD(field) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG(i) LOAD(args[i]) /* little-endian: the low word comes first */
#define RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action)
#define IF(op, value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | op | BPF_K, value, yes, no)

/* "When the call is `name`: look at the low word of argument `arg`": skips `body` instructions
 * plus the two loads otherwise. */
static void begin_call(struct program *out, uint32_t arch, const char *name, int arg, int body)
{
    int nr = seccomp_syscall_resolve_name_arch(arch, name);
    if (nr < 0) die("unknown system call", name);
    emit(out, LOAD(nr));
    emit(out, IF(BPF_JEQ, (uint32_t)nr, 0, (uint8_t)(body + 1)));
    emit(out, LOAD_ARG(arg));
}

/* If the loaded word is one of the values: the action. */
static void refuse_values(struct program *out, uint32_t arch, const char *name, int arg,
                          const uint32_t *values, int count, uint32_t action)
{
    begin_call(out, arch, name, arg, 2 * count);
    for (int i = 0; i < count; i++) {
        emit(out, IF(BPF_JEQ, values[i], 0, 1));
        emit(out, RETURN(action));
    }
}

/* If it is none of them: the action. */
static void refuse_others(struct program *out, uint32_t arch, const char *name, int arg,
                          const uint32_t *values, int count, uint32_t action)
{
    begin_call(out, arch, name, arg, count + 1);
    for (int i = 0; i < count; i++) {
        emit(out, IF(BPF_JEQ, values[i], (uint8_t)(count - i), 0));
    }
    emit(out, RETURN(action));
}

static void add_prelude(struct program *out, const struct target *target)
{
    uint32_t arch = target->scmp_arch;
    emit(out, LOAD(arch));
    emit(out, IF(BPF_JEQ, target->audit_arch, 1, 0));
    emit(out, RETURN(SECCOMP_RET_KILL_PROCESS)); /* int 0x80 and other foreign ABIs */

    /* Input injection into a terminal, and console functions. */
    const uint32_t terminal[] = {TIOCSTI, TIOCLINUX, TIOCCONS};
    refuse_values(out, arch, "ioctl", 1, terminal, 3, SECCOMP_RET_ERRNO | EPERM);

    begin_call(out, arch, "clone", 0, 2);
    emit(out, IF(BPF_JSET, CLONE_NEW_ANY, 0, 1));
    emit(out, RETURN(SECCOMP_RET_ERRNO | EPERM)); /* as unshare */

    /* AF_ALG wrote to page caches, AF_VSOCK reaches the hypervisor, AF_NETLINK and AF_PACKET
     * reach kernel configuration. */
    const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6};
    refuse_others(out, arch, "socket", 0, families, 3, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    refuse_others(out, arch, "socketpair", 0, families, 1, SECCOMP_RET_ERRNO | EAFNOSUPPORT);

    /* Asking, and the default; others weaken address randomisation or emulate other ABIs. */
    const uint32_t personalities[] = {0xffffffff, 0};
    refuse_others(out, arch, "personality", 0, personalities, 2, SECCOMP_RET_ERRNO | EPERM);
}

static void add_rows(scmp_filter_ctx ctx, uint32_t arch)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char names[2048];
        snprintf(names, sizeof names, "%s", rows[i].name);
        char *rest = names;
        for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
            int nr = seccomp_syscall_resolve_name_arch(arch, name);
            if (nr == __NR_SCMP_ERROR && rows[i].action != ALLOW) continue; /* newer than us */
            if (nr == __NR_SCMP_ERROR) die("unknown system call", name);
            if (nr < 0 || rows[i].action == ABSENT) continue; /* not on this architecture */
            nr = seccomp_syscall_resolve_name(name); /* rules are added by the native number */
            uint32_t action = rows[i].action == ALLOW ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM);
            if (seccomp_rule_add(ctx, action, nr, 0) < 0) die("add a rule", name);
        }
    }
}

static void add_table(struct program *out, const struct target *target)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (ctx == NULL) die("seccomp_init", "out of memory");
    if (seccomp_arch_native() != target->scmp_arch) {
        if (seccomp_arch_add(ctx, target->scmp_arch) < 0) die("add architecture", target->name);
        seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE);
    }
    if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
        seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0) {
        die("set attributes", "libseccomp 2.5 or newer is needed");
    }
    add_rows(ctx, target->scmp_arch);
    FILE *file = tmpfile();
    if (file == NULL || seccomp_export_bpf(ctx, fileno(file)) < 0) die("export", target->name);
    rewind(file);
    struct sock_filter instruction;
    while (fread(&instruction, sizeof instruction, 1, file) == 1) {
        emit(out, instruction);
    }
    fclose(file);
    seccomp_release(ctx);
}

int main(void)
{
    printf("/* Made at build time by seccomp_gen from seccomp_table.h. */\n"
           "#include <linux/filter.h>\n");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        static struct program program;
        program.len = 0;
        add_prelude(&program, &targets[i]);
        add_table(&program, &targets[i]);
        printf("#if defined(%s)\nstatic const struct sock_filter guest_filter[] = {\n",
               targets[i].macro);
        for (size_t k = 0; k < program.len; k++) {
            const struct sock_filter *f = &program.code[k];
            printf("    {0x%02x, %u, %u, 0x%08x},\n", f->code, f->jt, f->jf, f->k);
        }
        printf("};\n#endif\n");
    }
    return 0;
}
