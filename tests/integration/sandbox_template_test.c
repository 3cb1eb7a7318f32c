/* What a sandbox is made from: the machine's own programs, and directories. */
#include "sandbox_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- template "host": what the machine has works ---- */

static const struct {
    const char *program, *command, *output;
} tools[] = {
    {"awk", "echo 1 2 | awk '{print $1 + $2}'", "3\n"},
    {"perl", "perl -e 'use POSIX; print floor(2.5), \"\\n\"'", "2\n"},
    {"python3", "python3 -c 'import json, ssl, sqlite3, ctypes; print(json.dumps([6 * 7]))'",
     "[42]\n"},
    {"git",
     "git init -q r && cd r && git config user.email a@b && git config user.name n && "
     "echo x > f && git add f && git commit -qm m && git log --format=%s",
     "m\n"},
    {"gcc",
     "printf '#include <stdio.h>\\nint main(void){puts(\"compiled\");return 0;}' > a.c && "
     "gcc -o a a.c && ./a",
     "compiled\n"},
    {"node", "node -e 'console.log([1,2,3].map(x => x * 2).join())'", "2,4,6\n"},
    {"lua5.4", "lua5.4 -e 'print(1 // 1)'", "1\n"},
    {"tar", "echo hi > f; tar cz f | tar xzO", "hi\n"},
    {"bash", "bash -c 'echo ${BASH_VERSION:+yes} < <(true)'", "yes\n"},
};

START_TEST(programs_of_the_machine)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "/usr/bin/%s", tools[i].program);
        if (stat(path, &st) < 0) {
            printf("skipped: %s is not on this machine\n", path);
            continue;
        }
        sh_says(tools[i].command, tools[i].output);
    }
    fflush(stdout);
}
END_TEST

START_TEST(certificates_and_names)
{
    sh_says(
        "test -s /etc/ssl/certs/ca-certificates.crt -o ! -e /usr/share/ca-certificates && echo ok",
        "ok\n");
    sh_says("getent hosts localhost | cut -d' ' -f1; getent passwd user; id -un; hostname",
            "::1\nuser:x:1000:1000:user:/home/user:/bin/sh\nuser\nsandbox\n");
    sh_says("TZ=Asia/Tokyo date -d @0 +%H 2>/dev/null || echo 09", "09\n");
}
END_TEST

START_TEST(writable_places)
{
    sh_says("for d in /tmp /var/tmp /run /dev/shm /home/user /workspace; do "
            "echo x > $d/f && rm $d/f || echo cannot write $d; done; "
            "for d in / /usr /etc /dev /proc /home /var; do "
            "touch $d/f 2>/dev/null && echo can write $d; done; true",
            "");
    sh_says("stat -c %a /tmp; stat -c '%a %U' /workspace /home/user", "1777\n755 user\n755 user\n");
}
END_TEST

/* ---- template directories ---- */

static char dir[] = "/tmp/barchan-template-XXXXXX";

static void shell(const char *format)
{
    char command[4096];
    snprintf(command, sizeof command, "D=%s; %s", dir, format);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* A root file system of a few programs and their libraries. */
static void make_root(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    shell("chmod 755 $D; mkdir -p $D/bin $D/etc $D/tmp $D/opt/tool; "
          "for p in sh cat ls id touch grep; do f=$(command -v $p); f=$(readlink -f $f); "
          "cp $f $D/bin/$p; ldd $f | grep -o '/[^ ]*' | while read l; do "
          "mkdir -p $D$(dirname $l); cp -n $l $D$l; done; done; "
          "echo 'root:x:0:0::/root:/bin/sh' > $D/etc/passwd; "
          "echo 'app:x:7:7::/:/bin/sh' >> $D/etc/passwd; "
          "echo 'taken:x:1000:1000::/:/bin/sh' >> $D/etc/passwd; "
          "echo made-up > $D/etc/motd; echo hidden > $D/tmp/hidden; echo tool > $D/opt/tool/t");
}

static void setup_root(void)
{
    setup_runtime();
    make_root();
}

static void teardown_root(void)
{
    teardown();
    shell("rm -rf $D");
}

static void create_from_dir(void)
{
    barchan_error err = {0};
    ck_assert_msg(barchan_sandbox_create(&sbx, rt, PROFILE(.template_name = dir), &err) == 0, "%s",
                  err.message);
}

START_TEST(a_directory)
{
    create_from_dir();
    sh_says("cat /etc/motd /opt/tool/t; ls /tmp /usr/bin/python3 2>/dev/null; id -un; echo x > f; "
            "cat f",
            "made-up\ntool\n/tmp:\nuser\nx\n");
    sh_says("cat /etc/passwd",
            "user:x:1000:1000:user:/home/user:/bin/sh\nroot:x:0:0::/root:/bin/sh\n"
            "app:x:7:7::/:/bin/sh\n");
    sh_says("touch /bin/new /etc/new /opt/new 2>/dev/null; cat /etc/hostname; ls /dev",
            "sandbox\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\n"
            "zero\n");
    shell("test ! -e $D/bin/new && test ! -e $D/workspace && test ! -e $D/etc/hostname");
    /* A second one shares it and not the files. */
    barchan_sandbox_destroy(sbx);
    create_from_dir();
    sh_says("ls", "");
}
END_TEST

START_TEST(a_hostile_directory)
{
    /* Links where we put things, that would lead elsewhere on the host. */
    shell("rm -rf $D/tmp; ln -s /root $D/tmp; ln -s /etc $D/dev; ln -s / $D/proc; "
          "ln -s ../../../../.. $D/workspace; ln -s /var $D/home; ln -s /etc/shadow $D/etc/hosts; "
          "mkdir $D/run; ln -s /etc/shadow $D/run/x; rm $D/etc/passwd; "
          "ln -s /etc/shadow $D/etc/passwd");
    create_from_dir();
    sh_says("ls /tmp /workspace /home /run; cat /etc/hosts /etc/passwd | grep -c root; pwd",
            "/home:\nuser\n\n/run:\n\n/tmp:\n\n/workspace:\n0\n/workspace\n");
}
END_TEST

START_TEST(a_directory_without_a_shell)
{
    barchan_exec_result r;
    shell("rm $D/bin/sh");
    create_from_dir();
    r = sh("true");
    ck_assert_int_eq(r.reason, BARCHAN_EXEC_SPAWN_FAILED);
    ck_assert_int_eq(r.spawn_errno, ENOENT);
    barchan_exec_result_clear(&r);
}
END_TEST

START_TEST(the_hosts_own_trees_are_refused)
{
    const char *const paths[] = {"/", "/proc", "/sys", "/dev", "/proc/self", "/usr/.."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        barchan_sandbox *none;
        barchan_error err = {0};
        int rc = barchan_sandbox_create(&none, rt, PROFILE(.template_name = paths[i]), &err);
        ck_assert_msg(rc == BARCHAN_EINVAL, "%s: %s", paths[i], err.message);
        ck_assert_msg(strstr(err.message, "host's own") != NULL, "%s", err.message);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_template");
    TCase *tc = tcase_create("host");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, setup_sandbox, teardown);
    tcase_add_test(tc, programs_of_the_machine);
    tcase_add_test(tc, certificates_and_names);
    tcase_add_test(tc, writable_places);
    tcase_add_test(tc, the_hosts_own_trees_are_refused);
    suite_add_tcase(suite, tc);
    tc = tcase_create("directory");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup_root, teardown_root);
    tcase_add_test(tc, a_directory);
    tcase_add_test(tc, a_hostile_directory);
    tcase_add_test(tc, a_directory_without_a_shell);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
