/* Connections of a sandbox as they live: what flows, what is counted, what is asked. */
#include "network_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static barchan_network_rules usual(void)
{
    return (barchan_network_rules){.allow = entries("served.example:@", "127.0.0.1:@", NULL)};
}

/* ---- bytes ---- */

START_TEST(a_server_may_speak_first)
{
    serve_kind(NET_GREET);
    make_usual_sandbox();
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/served.example/%d; read -r line <&3; echo \"$line\"; "
             "echo bye >&3; read -r line <&3; echo \"$line\"'",
             net_port(server));
    sh_says(command, "220 hello\nbye\n");
}
END_TEST

/* Both ways at once, more than any buffer holds, and the end of one way before the other's. */
static const char echo_code[] =
    "import socket, sys, threading, hashlib\n"
    "s = socket.create_connection(('served.example', int(sys.argv[1])))\n"
    "block, count = bytes(range(256)) * 256, int(sys.argv[2])\n"
    "def send():\n"
    "    for i in range(count): s.sendall(block)\n"
    "    s.shutdown(socket.SHUT_WR)\n"
    "t = threading.Thread(target=send); t.start()\n"
    "sum, got = hashlib.sha256(), 0\n"
    "while True:\n"
    "    data = s.recv(1 << 16)\n"
    "    if not data: break\n"
    "    sum.update(data); got += len(data)\n"
    "t.join()\n"
    "print(got, sum.hexdigest() == hashlib.sha256(block * count).hexdigest())\n";

static void echo_through(int blocks)
{
    char port[16], count[16], expected[64];
    snprintf(port, sizeof port, "%d", net_port(server));
    snprintf(count, sizeof count, "%d", blocks);
    snprintf(expected, sizeof expected, "%d True\n", blocks * 65536);
    barchan_exec_result result =
        run(OPTIONS(.argv = ARGV("python3", "-c", echo_code, port, count)));
    ck_assert_msg(strcmp(result.out.data, expected) == 0, "%s%s", result.out.data,
                  result.err_out.data);
    barchan_exec_result_clear(&result);
}

START_TEST(all_bytes_arrive_both_ways)
{
    serve_kind(NET_ECHO);
    make_usual_sandbox();
    echo_through(256);
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_eq(usage.count, 1);
    ck_assert_str_eq(usage.hosts[0].host, "served.example");
    ck_assert_uint_eq(usage.hosts[0].connections, 1);
    ck_assert_uint_eq(usage.hosts[0].bytes_sent, 256u * 65536u);
    ck_assert_uint_eq(usage.hosts[0].bytes_received, 256u * 65536u);
    barchan_network_usage_clear(&usage);
}
END_TEST

START_TEST(a_rate_slows_down_and_loses_nothing)
{
    serve_kind(NET_ECHO);
    barchan_network_rules rules = usual();
    rules.bytes_per_second = 2 << 20;
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
    int64_t began = monotonic_ms();
    echo_through(64); /* 4 MiB each way; a second's worth may be saved up */
    ck_assert_int_gt(monotonic_ms() - began, 2800);
}
END_TEST

START_TEST(no_more_than_max_bytes)
{
    serve_kind(NET_SOURCE);
    barchan_network_rules rules = usual();
    rules.max_bytes = 1 << 20;
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/served.example/%d; echo 8000000 >&3; cat <&3 | wc -c'",
             net_port(server));
    barchan_exec_result result = sh(command);
    long got = strtol(result.out.data, NULL, 10);
    ck_assert_int_le(got, 1 << 20); /* the reset may take with it what was not read yet */
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_le(usage.hosts[0].bytes_sent + usage.hosts[0].bytes_received, 1 << 20);
    barchan_network_usage_clear(&usage);
    was_denied(&result, "served.example", net_port(server), "max_bytes");
    result = talk("served.example", net_port(server), "10\\n");
    ck_assert_uint_eq(result.out.len, 0);
    was_denied(&result, "served.example", net_port(server), "max_bytes");
}
END_TEST

START_TEST(further_connections_wait)
{
    serve_kind(NET_GREET);
    barchan_network_rules rules = usual();
    rules.max_connections = 2;
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
    char command[512];
    snprintf(command, sizeof command,
             "bash -c 'p=/dev/tcp/served.example/%d; exec 3<>$p 4<>$p 5<>$p; "
             "read -t 10 a <&3; read -t 10 b <&4; "
             "read -t 0.5 c <&5 && echo early; exec 3<&-; read -t 10 c <&5; echo \"$c\"'",
             net_port(server));
    sh_says(command, "220 hello\n");
}
END_TEST

START_TEST(many_at_once)
{
    serve_kind(NET_ECHO);
    make_usual_sandbox();
    char port[16];
    snprintf(port, sizeof port, "%d", net_port(server));
    static const char code[] = "import socket, sys\n"
                               "at = ('served.example', int(sys.argv[1]))\n"
                               "all = [socket.create_connection(at) for i in range(200)]\n"
                               "for s in all: s.sendall(b'hello')\n"
                               "print(sum(s.recv(5) == b'hello' for s in all))\n";
    barchan_exec_result result = run(OPTIONS(.argv = ARGV("python3", "-c", code, port)));
    ck_assert_str_eq(result.out.data, "200\n");
    barchan_exec_result_clear(&result);
}
END_TEST

/* ---- refusals in bulk ---- */

START_TEST(refusals_are_told_once_and_bounded)
{
    make_usual_sandbox();
    static const char code[] =
        "import socket, sys\n"
        "def get(host):\n"
        "    s = socket.create_connection((host, 80))\n"
        "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
        "    while s.recv(4096): pass\n"
        "for i in range(int(sys.argv[1])): get('host%d.example' % (i // 2))\n";
    barchan_exec_result result = run(OPTIONS(.argv = ARGV("python3", "-c", code, "6")));
    ck_assert_uint_eq(result.denied_count, 3);
    ck_assert_uint_eq(result.denied[2].tries, 2);
    ck_assert_uint_eq(result.denied_more, 0);
    barchan_exec_result_clear(&result);
    result = run(OPTIONS(.argv = ARGV("python3", "-c", code, "200")));
    ck_assert_uint_eq(result.denied_count, 64);
    ck_assert_uint_eq(result.denied_more, 200 - 2 * 64);
    barchan_exec_result_clear(&result);
    result = sh("true");
    was_not_denied(&result);
}
END_TEST

/* ---- failures ---- */

/* Programs see no more of it than an alert. */
START_TEST(a_failure_under_tls_is_told)
{
    char command[256];
    int port = net_port(server);
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){
                     .allow = entries("served.example:@", "127.0.0.1:@", "no.such.invalid", NULL)});
    net_stop(server);
    server = NULL;
    snprintf(command, sizeof command,
             "openssl s_client -connect served.example:%d -servername served.example </dev/null",
             port);
    barchan_exec_result result = sh(command);
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "alert internal error"));
    was_unreached(&result, "served.example", port, "connect: Connection refused");
    result = sh("openssl s_client -connect no.such.invalid:443 </dev/null");
    was_unreached(&result, "no.such.invalid", 443, "look up the name: ");
    result = sh("true"); /* what was before is not its own */
    ck_assert_ptr_null(result.unreached);
    was_not_denied(&result);
}
END_TEST

START_TEST(failures_are_told_once_bounded_and_beside_refusals)
{
    static const char code[] =
        "import socket, sys\n"
        "def get(host, port):\n"
        "    s = socket.create_connection((host, port))\n"
        "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
        "    while s.recv(4096): pass\n"
        "get('other.example', 80)\n"
        "for i in range(200): get('h%d.served.example' % (i // 2), int(sys.argv[1]))\n";
    char port[16];
    const char *hosts[101];
    char names[100][40];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "h%d.served.example=127.0.0.1", i);
        hosts[i] = names[i];
    }
    hosts[100] = NULL;
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){
                     .allow = entries("*.served.example:@", "127.0.0.1:@", NULL), .hosts = hosts});
    snprintf(port, sizeof port, "%d", net_port(server));
    net_stop(server);
    server = NULL;
    barchan_exec_result result = run(OPTIONS(.argv = ARGV("python3", "-c", code, port)));
    ck_assert_uint_eq(result.unreached_count, 64);
    ck_assert_uint_eq(result.unreached_more, 200 - 2 * 64);
    ck_assert_str_eq(result.unreached[63].host, "h63.served.example");
    ck_assert_uint_eq(result.unreached[63].tries, 2);
    was_denied(&result, "other.example", 80, "not in the allow-list");
}
END_TEST

/* ---- questions ---- */

static struct asked {
    int count, answer; /* -1: later */
    char host[256];
    int port;
    barchan_connect *connect;
    int destroy;
} asked;

static void on_connect(barchan_sandbox *sandbox, barchan_connect *connect, const char *host,
                       int port, void *ud)
{
    struct asked *a = ud;
    ck_assert_ptr_eq(sandbox, sbx);
    a->count++;
    a->port = port;
    a->connect = connect;
    if (a->destroy) {
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
    }
    snprintf(a->host, sizeof a->host, "%s", host);
    if (a->answer >= 0) barchan_connect_answer(connect, a->answer);
}

static void make_asking(int answer)
{
    asked = (struct asked){.answer = answer};
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("127.0.0.1:@", NULL),
                                         .deny = entries("denied.example", NULL),
                                         .on_connect = on_connect,
                                         .ud = &asked});
}

START_TEST(what_no_entry_names_is_asked_once)
{
    make_asking(1);
    int port = net_port(server);
    talk_says("served.example", port, GET("served.example"), "served by");
    talk_says("served.example", port, GET("served.example"), "served by");
    ck_assert_int_eq(asked.count, 1);
    ck_assert_str_eq(asked.host, "served.example");
    ck_assert_int_eq(asked.port, port);
    talk_says("other.example", port, GET("other.example"), "served by");
    ck_assert_int_eq(asked.count, 2);
    barchan_exec_result result = talk("denied.example", port, GET("denied.example"));
    was_denied(&result, "denied.example", port, "deny:");
    ck_assert_int_eq(asked.count, 2);
}
END_TEST

START_TEST(an_answer_may_be_no)
{
    make_asking(0);
    barchan_exec_result result = talk("served.example", 80, GET("served.example"));
    was_denied(&result, "served.example", 80, "refused when asked");
    result = talk("served.example", 80, GET("served.example"));
    was_denied(&result, "served.example", 80, "refused when asked");
    ck_assert_int_eq(asked.count, 1);
}
END_TEST

static int was_asked(void *ud)
{
    return ((struct asked *)ud)->count > 0;
}

static struct ended ended;

static void start_talking(int port)
{
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/served.example/%d && printf \"" GET(
                 "served.example") "\" >&3 && cat <&3 | grep -q served.by'",
             port);
    ended = (struct ended){0};
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = command), note_end, &ended, NULL),
        0);
}

START_TEST(an_answer_may_come_later)
{
    make_asking(-1);
    start_talking(net_port(server));
    ck_assert(wait_until(was_asked, &asked, 10000));
    ck_assert_int_eq(ended.count, 0);
    barchan_connect_answer(asked.connect, 1);
    ck_assert(wait_until(exec_ended, &ended, 10000));
    ck_assert_int_eq(ended.result.exit_code, 0);
}
END_TEST

START_TEST(an_answer_may_come_too_late)
{
    make_asking(-1);
    start_talking(net_port(server));
    ck_assert(wait_until(was_asked, &asked, 10000));
    barchan_sandbox_destroy(sbx);
    sbx = NULL;
    ck_assert(wait_until(exec_ended, &ended, 10000));
    barchan_connect_answer(asked.connect, 1);
    ck_assert_int_eq(net_accepted(server), 0);
}
END_TEST

START_TEST(a_question_may_end_its_sandbox)
{
    make_asking(1);
    asked.destroy = 1;
    start_talking(net_port(server));
    ck_assert(wait_until(exec_ended, &ended, 10000));
    ck_assert_int_eq(asked.count, 1);
    ck_assert_str_eq(asked.host, "served.example");
}
END_TEST

/* ---- events ---- */

static struct events {
    int count;
    barchan_network_event_kind kinds[16];
    uint64_t sent, received;
    char rule[512], address[64];
    int destroy;
} events;

static void on_event(barchan_sandbox *sandbox, const barchan_network_event *event, void *ud)
{
    struct events *e = ud;
    ck_assert_ptr_eq(sandbox, sbx);
    ck_assert_int_lt(e->count, 16);
    e->kinds[e->count++] = event->kind;
    e->sent = event->bytes_sent;
    e->received = event->bytes_received;
    snprintf(e->rule, sizeof e->rule, "%s", event->rule);
    snprintf(e->address, sizeof e->address, "%s", event->address);
    if (e->destroy) {
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
    }
}

static int has_closed(void *ud)
{
    const struct events *e = ud;
    return e->count > 0 && e->kinds[e->count - 1] == BARCHAN_NETWORK_CLOSED;
}

static void make_telling(void)
{
    events = (struct events){0};
    barchan_network_rules rules = usual();
    rules.on_event = on_event;
    rules.ud = &events;
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
}

START_TEST(each_connection_is_told)
{
    make_telling();
    talk_says("served.example", net_port(server), GET("served.example"), "served by");
    ck_assert(wait_until(has_closed, &events, 10000));
    ck_assert_int_eq(events.count, 2);
    ck_assert_int_eq(events.kinds[0], BARCHAN_NETWORK_CONNECTED);
    ck_assert_str_eq(barchan_network_event_name(events.kinds[0]), "connected");
    ck_assert_str_eq(barchan_network_event_name((barchan_network_event_kind)99), "unknown");
    ck_assert_uint_eq(events.sent, strlen("GET / HTTP/1.1\r\nHost: served.example\r\n\r\n"));
    ck_assert_uint_gt(events.received, 40);
    ck_assert_str_eq(events.address, "127.0.0.1");
    ck_assert_ptr_nonnull(strstr(events.rule, "allow: served.example:"));
}
END_TEST

START_TEST(an_event_may_end_its_sandbox)
{
    make_telling();
    events.destroy = 1;
    start_talking(net_port(server));
    ck_assert(wait_until(exec_ended, &ended, 10000));
    ck_assert_int_eq(events.count, 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_server_may_speak_first,
                                  all_bytes_arrive_both_ways,
                                  a_rate_slows_down_and_loses_nothing,
                                  no_more_than_max_bytes,
                                  further_connections_wait,
                                  many_at_once,
                                  refusals_are_told_once_and_bounded,
                                  a_failure_under_tls_is_told,
                                  failures_are_told_once_bounded_and_beside_refusals,
                                  what_no_entry_names_is_asked_once,
                                  an_answer_may_be_no,
                                  an_answer_may_come_later,
                                  an_answer_may_come_too_late,
                                  a_question_may_end_its_sandbox,
                                  each_connection_is_told,
                                  an_event_may_end_its_sandbox,
                                  NULL};
    Suite *suite = suite_create("network_flow");
    add_tests(suite, "network_flow", setup_network, teardown_network, tests);
    return run_suite(suite);
}
