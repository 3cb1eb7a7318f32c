/* Much at once from a server: every byte in its place, whoever is slow, ends early, or is one of
 * many. */
#include "network_support.h"

#include <stdio.h>
#include <string.h>

static void setup(void)
{
    setup_network();
    serve_kind(NET_SOURCE);
    make_usual_sandbox();
}

/* Runs python with `fetch(count)`, a connection that is asked for so many bytes, and
 * `whole(count)`, what they are. */
static void python_says(const char *code, const char *expected)
{
    static const char start[] =
        "import socket, sys, threading, time\n"
        "def fetch(count):\n"
        "    s = socket.create_connection(('served.example', int(sys.argv[1])))\n"
        "    s.sendall(b'%d\\n' % count)\n"
        "    return s\n"
        "def whole(count): return (bytes(range(251)) * (count // 251 + 1))[:count]\n"
        "def read(s, pause=0):\n"
        "    parts = []\n"
        "    while True:\n"
        "        part = s.recv(100000)\n"
        "        if not part: return b''.join(parts)\n"
        "        parts.append(part); time.sleep(pause)\n";
    char script[4096], port[16];
    snprintf(script, sizeof script, "%s%s", start, code);
    snprintf(port, sizeof port, "%d", net_port(server));
    barchan_exec_result r = run(OPTIONS(.argv = ARGV("python3", "-c", script, port)));
    ck_assert_msg(strcmp(r.out.data, expected) == 0, "%s%s", r.out.data, r.err_out.data);
    barchan_exec_result_clear(&r);
}

static int no_connection(void *ud)
{
    barchan_network_usage usage;
    (void)ud;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    int none = usage.open == 0;
    barchan_network_usage_clear(&usage);
    return none;
}

/* The library's; the server keeps one for each connection that it has had. */
static int library_fds(void)
{
    return count_fds() - net_accepted(server);
}

static void nothing_is_left(int fds_before)
{
    ck_assert(wait_until(no_connection, NULL, 10000));
    ck_assert_int_eq(library_fds(), fds_before);
}

START_TEST(a_slow_reader_gets_all)
{
    python_says("n = 12345678\n"
                "print(read(fetch(n), 0.004) == whole(n), read(fetch(1)) == whole(1))",
                "True True\n");
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_eq(usage.hosts[0].bytes_received, 12345679);
    barchan_network_usage_clear(&usage);
}
END_TEST

/* More than there are pipes for. */
START_TEST(many_get_all)
{
    int before = library_fds();
    python_says("good = []\n"
                "def one(n): good.append(read(fetch(n), 0.001) == whole(n))\n"
                "all = [threading.Thread(target=one, args=(1500000 + i,)) for i in range(48)]\n"
                "for t in all: t.start()\n"
                "for t in all: t.join()\n"
                "print(good.count(True))",
                "48\n");
    nothing_is_left(before);
}
END_TEST

/* The library's end has bytes left for who has gone. */
START_TEST(readers_that_end_early)
{
    int before = library_fds();
    python_says("for i in range(40):\n"
                "    s = fetch(50000000)\n"
                "    while len(s.recv(300000, socket.MSG_WAITALL)) < 300000: pass\n"
                "    if i % 2: s.shutdown(socket.SHUT_RD)\n"
                "    s.close()\n"
                "print('done')",
                "done\n");
    nothing_is_left(before);
    python_says("print(len(read(fetch(700000))))", "700000\n");
}
END_TEST

/* One that takes all that it can get leaves something for another. */
START_TEST(a_rate_is_shared)
{
    const barchan_network_rules rules = {.allow = entries("served.example:@", "127.0.0.1:@", NULL),
                                         .bytes_per_second = 4000};
    barchan_sandbox_destroy(sbx);
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'p=/dev/tcp/served.example/%d; exec 3<>$p 4<>$p; echo 8000000 >&4; "
             "head -c 5000 <&4 >/dev/null; cat <&4 >/dev/null & echo 1000 >&3; timeout 20 head -c "
             "1000 <&3 | wc -c; "
             "kill $!'",
             net_port(server));
    sh_says(command, "1000\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_network_bulk");
    const TTest *const tests[] = {a_slow_reader_gets_all, many_get_all, readers_that_end_early,
                                  a_rate_is_shared, NULL};
    add_tests(suite, "bulk", setup, teardown_network, tests);
    return run_suite(suite);
}
