/* The network of a detached sandbox, as those who are connected hear of it. */
#include "detached_support.h"
#include "network_support.h"

#include <barchan/secret.h>
#include <stdio.h>
#include <string.h>

static void set_up_held_network(void)
{
    static const char *const hosts[] = {"served.example=127.0.0.1", "other.example=127.0.0.1",
                                        NULL};
    use_scratch_directory();
    setup_network();
    const barchan_network_rules rules = {.struct_size = sizeof rules,
                                         .allow = entries("served.example:@", "127.0.0.1:@", NULL),
                                         .hosts = hosts};
    holder = start_holder(PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules));
    sbx = connect_to(holder.id);
}

static void tear_down_held_network(void)
{
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(holder_gone(&holder), 0);
    teardown_network();
    remove_scratch_directory();
}

START_TEST(refusals_are_in_the_result)
{
    char command[128];
    talk_says("served.example", net_port(server), GET("served.example"), "the world");
    barchan_exec_result result = talk("other.example", 80, GET("other.example"));
    was_denied(&result, "other.example", 80, "not in the allow-list");
    result = sh("true"); /* what was before is not its own */
    was_not_denied(&result);
    snprintf(command, sizeof command,
             "echo x | timeout 10 cat >/dev/tcp/other.example/80; kill $$");
    result = run(OPTIONS(.argv = ARGV("bash", "-c", command)));
    ck_assert_int_eq(result.reason, BARCHAN_EXEC_SIGNALED);
    was_denied(&result, "other.example", 80, "");
}
END_TEST

START_TEST(failures_are_in_the_result)
{
    int port = net_port(server);
    net_stop(server);
    server = NULL;
    barchan_exec_result result = talk("served.example", port, GET("served.example"));
    was_unreached(&result, "served.example", port, "connect: Connection refused");
    result = sh("true");
    ck_assert_ptr_null(result.unreached);
    was_not_denied(&result);
}
END_TEST

START_TEST(secrets_are_not_set_by_those_who_connect)
{
    barchan_error err = {0};
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "A", "0123456789abcdef", 16, &err),
                     BARCHAN_EUNSUPPORTED);
    ck_assert_str_eq(err.message,
                     "set secret: a detached sandbox has no secrets that a connection could set");
}
END_TEST

START_TEST(many_refusals_are_bounded)
{
    static const char code[] = "import socket\n"
                               "for i in range(100):\n"
                               "    s = socket.create_connection(('host%d.example' % i, 80))\n"
                               "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
                               "    while s.recv(4096): pass\n";
    barchan_exec_result result = run(OPTIONS(.argv = ARGV("python3", "-c", code)));
    ck_assert_uint_eq(result.denied_count, 64);
    ck_assert_uint_eq(result.denied_more, 100 - 64);
    ck_assert_str_eq(result.denied[63].host, "host63.example");
    barchan_exec_result_clear(&result);
}
END_TEST

/* ---- hosts ---- */

struct told {
    int done, code;
    barchan_network_usage usage;
};

static void on_usage(barchan_network_usage *usage, const barchan_error *err, void *ud)
{
    struct told *told = ud;
    told->done++;
    told->code = err == NULL ? 0 : err->code;
    if (usage == NULL) return;
    told->usage = *usage;
    *usage = (barchan_network_usage){0};
}

static int is_told(void *ud)
{
    return ((struct told *)ud)->done > 0;
}

static struct told ask_network(void)
{
    struct told told = {0};
    barchan_error err = {0};
    int rc = barchan_sandbox_network_start(sbx, on_usage, &told, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    ck_assert_int_eq(told.done, 0);
    ck_assert(wait_until(is_told, &told, 20000));
    ck_assert_int_eq(told.done, 1);
    return told;
}

static void check_hosts(void)
{
    talk_says("served.example", net_port(server), GET("served.example"), "the world");
    barchan_exec_result result = talk("other.example", 80, GET("other.example"));
    barchan_exec_result_clear(&result);
    struct told told = ask_network();
    ck_assert_int_eq(told.code, 0);
    ck_assert_uint_eq(told.usage.count, 2);
    ck_assert_str_eq(told.usage.hosts[0].host, "served.example");
    ck_assert_uint_eq(told.usage.hosts[0].connections, 1);
    ck_assert_uint_gt(told.usage.hosts[0].bytes_sent, 20);
    ck_assert_uint_gt(told.usage.hosts[0].bytes_received, 9);
    ck_assert_str_eq(told.usage.hosts[1].host, "other.example");
    ck_assert_uint_eq(told.usage.hosts[1].denied, 1);
    barchan_network_usage_clear(&told.usage);
}

START_TEST(hosts_are_told)
{
    barchan_network_usage usage;
    barchan_error err;
    ck_assert_int_eq(barchan_sandbox_network_start(sbx, NULL, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, &err), BARCHAN_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "barchan_sandbox_network_start"));
    check_hosts();
    barchan_sandbox_terminate(sbx);
    ck_assert_int_eq(barchan_sandbox_network_start(sbx, on_usage, NULL, &err), BARCHAN_ELOST);
}
END_TEST

/* More than one answer takes. */
START_TEST(many_hosts_are_told)
{
    static const char code[] = "import socket\n"
                               "part = '.' + '.'.join(['a' * 57] * 4)\n"
                               "for i in range(700):\n"
                               "    s = socket.create_connection(('h%03d' % i + part, 80))\n"
                               "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
                               "    while s.recv(4096): pass\n";
    barchan_exec_result result = run(OPTIONS(.argv = ARGV("python3", "-c", code)));
    ck_assert_msg(result.exit_code == 0, "%s", result.err_out.data);
    barchan_exec_result_clear(&result);
    struct told told = ask_network();
    ck_assert_int_eq(told.code, 0);
    ck_assert_uint_eq(told.usage.count, 700);
    for (int i = 0; i < 700; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%03d.aaa", i);
        ck_assert_int_eq(strncmp(told.usage.hosts[i].host, name, strlen(name)), 0);
        ck_assert_uint_eq(told.usage.hosts[i].denied, 1);
    }
    barchan_network_usage_clear(&told.usage);
}
END_TEST

/* One of this process tells the same, and after its end, too. */
START_TEST(hosts_of_an_own_one)
{
    make_usual_sandbox();
    check_hosts();
    barchan_sandbox_terminate(sbx);
    struct told told = ask_network();
    ck_assert_uint_eq(told.usage.count, 2);
    barchan_network_usage_clear(&told.usage);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox_detached_network");
    const TTest *const held[] = {refusals_are_in_the_result,
                                 failures_are_in_the_result,
                                 many_refusals_are_bounded,
                                 secrets_are_not_set_by_those_who_connect,
                                 hosts_are_told,
                                 many_hosts_are_told,
                                 NULL};
    const TTest *const own[] = {hosts_of_an_own_one, NULL};
    add_tests(suite, "detached_network", set_up_held_network, tear_down_held_network, held);
    add_tests(suite, "own_network", setup_network, teardown_network, own);
    return run_suite(suite);
}
