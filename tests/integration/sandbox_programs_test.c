/* What a sandbox forbids must leave ordinary programs at work: compilers, interpreters, debuggers.
 */
#include "sandbox_support.h"

#include <stdio.h>
#include <string.h>

/* Runs it where the host has the program; counts and names it otherwise. */
static void works(const char *program, const char *command, const char *expected)
{
    char probe[96];
    snprintf(probe, sizeof probe, "command -v %s >/dev/null", program);
    barchan_exec_result r = sh(probe);
    int there = r.exit_code == 0;
    barchan_exec_result_clear(&r);
    if (!there) {
        printf("SKIP %s: not in this host's /usr\n", program);
        return;
    }
    sh_says(command, expected);
}

START_TEST(compilers_and_builds)
{
    static const char sum[] =
        "printf '#include <stdio.h>\\n#include <pthread.h>\\nvoid *f(void *p) { return p; }\\n"
        "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0);"
        " puts(\"compiled\"); }\\n' > a.c && gcc -pthread -o a a.c && ./a";
    works("gcc", sum, "compiled\n");
    works("make", "printf 'all: b\\nb:\\n\\t@echo made > b\\n' > Makefile; make -s -j4; cat b",
          "made\n");
    works("git",
          "git init -q r && cd r && git config user.email a@b && git config user.name n &&"
          " echo x > f && git add f && git commit -qm first && git log --format=%s",
          "first\n");
}
END_TEST

START_TEST(interpreters)
{
    works("python3",
          "python3 -c 'import threading,multiprocessing as m,subprocess,sqlite3\n"
          "t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()\n"
          "if __name__ == \"__main__\":\n"
          "  with m.Pool(3) as p: print(sum(p.map(abs, range(-9, 0))))\n"
          "  q = m.Queue(); q.put(1); print(q.get(), m.Value(\"i\", 4).value)\n"
          "print(subprocess.run([\"echo\", \"child\"], capture_output=True, text=True).stdout, "
          "end=\"\")\n"
          "print(sqlite3.connect(\"db\").execute(\"select 6*7\").fetchone()[0])'",
          "thread\n45\n1 4\nchild\n42\n");
    works("node",
          "node -e 'const {Worker} = require(\"worker_threads\");"
          " new Worker(\"console.log(6*7)\", {eval: true})'",
          "42\n");
    works("perl", "perl -e 'print fork ? (wait, \"parent\\n\")[1] : exit'", "parent\n");
    works("sqlite3", "sqlite3 d.db 'create table t(x); insert into t values (42); select x from t'",
          "42\n");
    barchan_exec_result r = sh("python3 -c 'import numpy' 2>/dev/null");
    int numpy = r.exit_code == 0;
    barchan_exec_result_clear(&r);
    if (numpy) {
        sh_says("python3 -c 'import numpy as n; print(int(n.ones((200, 200)).dot(n.ones((200, "
                "200))).sum()))'",
                "8000000\n");
    } else {
        printf("SKIP numpy: not in this host's /usr\n");
    }
}
END_TEST

START_TEST(debuggers)
{
    /* Of a child of its own; nobody else's process is taken hold of. */
    works("gdb",
          "printf 'int main(void)\\n{\\n int x = 41;\\n x++;\\n return x;\\n}\\n' > d.c && gcc -g "
          "-O0 -o d d.c &&"
          " gdb -batch -nx -ex 'break main' -ex run -ex next -ex next -ex 'print x' ./d 2>/dev/null"
          " | grep '^\\$1'",
          "$1 = 42\n");
    works("gdb",
          "sleep 100 & gdb -batch -nx -p $! 2>&1 | grep -c 'Operation not permitted\\|Could not "
          "attach';"
          " kill $!",
          "1\n");
    works("strace", "strace -f -o t sh -c 'echo traced' && grep -q 'write(1, \"traced' t",
          "traced\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_programs");
    const TTest *const tests[] = {compilers_and_builds, interpreters, debuggers, NULL};
    add_tests(suite, "programs", setup_sandbox, teardown, tests);
    return run_suite(suite);
}
