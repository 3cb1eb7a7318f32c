/* Other lists for a sandbox that runs: whom they concern, and whom they do not. */
#include "network_support.h"

#include <stdio.h>
#include <string.h>

static barchan_error err;

static int set(barchan_network network, const char *const *allow, const char *const *deny)
{
    static const char *const hosts[] = {"served.example=127.0.0.1", "other.example=127.0.0.1",
                                        NULL};
    const barchan_network_rules rules = {
        .struct_size = sizeof rules, .allow = allow, .deny = deny, .hosts = hosts};
    err = (barchan_error){0};
    return barchan_sandbox_set_network(sbx, network, &rules, &err);
}

static void refused(int code, const char *words, int rc)
{
    ck_assert_msg(rc == code && strstr(err.message, words) != NULL, "%d, %s", rc, err.message);
}

START_TEST(other_lists_are_for_new_connections)
{
    make_usual_sandbox();
    talk_says("served.example", net_port(server), GET("served.example"), "served by");
    barchan_exec_result r = talk("other.example", net_port(server), GET("other.example"));
    was_denied(&r, "other.example", net_port(server), "not in the allow-list");
    const char *const *others = entries("other.example:@", "127.0.0.1:@", NULL);
    ck_assert_msg(set(BARCHAN_NETWORK_ALLOW, others, NULL) == 0, "%s", err.message);
    talk_says("other.example", net_port(server), GET("other.example"), "served by");
    r = talk("served.example", net_port(server), GET("served.example"));
    was_denied(&r, "served.example", net_port(server), "not in the allow-list");
    ck_assert_int_eq(set(BARCHAN_NETWORK_ALLOW, NO_ENTRIES, NULL), 0);
    r = talk("other.example", net_port(server), GET("other.example"));
    was_denied(&r, "other.example", net_port(server), "not in the allow-list");
}
END_TEST

static int has_hello(void *ud)
{
    char said[32] = "";
    barchan_process_chunk chunk;
    barchan_process_read(ud, BARCHAN_STREAM_OUT, 0, said, sizeof said - 1, &chunk, NULL);
    return strstr(said, "hello") != NULL || chunk.ended;
}

/* One that stands when the lists change goes on, both ways. */
START_TEST(what_stands_goes_on)
{
    serve_kind(NET_GREET);
    make_usual_sandbox();
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/served.example/%d; read -r a <&3; echo \"$a\"; "
             "until [ -e go ]; do sleep 0.01; done; echo more >&3; read -r b <&3; echo \"$b\"; "
             "(exec 4<>/dev/tcp/served.example/%d; read -t 5 -r c <&4; echo \"new $c\")'",
             net_port(server), net_port(server));
    barchan_process *process;
    ck_assert_int_eq(
        barchan_sandbox_spawn(&process, sbx, OPTIONS(.command = command), NULL, NULL, NULL), 0);
    ck_assert(wait_until(has_hello, process, 20000));
    ck_assert_int_eq(set(BARCHAN_NETWORK_ALLOW, NO_ENTRIES, NULL), 0);
    file_put_text("go", "");
    ck_assert_int_eq(barchan_process_wait(process, 20000, NULL), 1);
    char said[128] = "";
    barchan_process_chunk chunk;
    barchan_process_read(process, BARCHAN_STREAM_OUT, 0, said, sizeof said - 1, &chunk, NULL);
    ck_assert_str_eq(said, "220 hello\nmore\nnew \n");
    barchan_process_destroy(process);
}
END_TEST

START_TEST(deny_can_be_added)
{
    make_usual_sandbox();
    const char *const *allow = entries("served.example:@", "127.0.0.1:@", NULL);
    static const char *const deny[] = {"*.example", NULL};
    ck_assert_int_eq(set(BARCHAN_NETWORK_ALLOW, allow, deny), 0);
    barchan_exec_result r = talk("served.example", net_port(server), GET("served.example"));
    was_denied(&r, "served.example", net_port(server), "deny");
}
END_TEST

/* Nothing changes then. */
START_TEST(what_is_refused)
{
    static const char *const port[] = {"served.example:9", NULL};
    static const char *const range[] = {"10.1.2.0/24:443", NULL};
    static const char *const malformed[] = {"https://served.example/", NULL};
    const barchan_network_rules caps = {.struct_size = sizeof caps, .max_bytes = 1};
    make_usual_sandbox();
    refused(BARCHAN_EUNSUPPORTED, "port 9", set(BARCHAN_NETWORK_ALLOW, port, NULL));
    refused(BARCHAN_EUNSUPPORTED, "10.1.2.0/24", set(BARCHAN_NETWORK_ALLOW, range, NULL));
    refused(BARCHAN_EINVAL, "https://served.example/", set(BARCHAN_NETWORK_ALLOW, malformed, NULL));
    refused(BARCHAN_EINVAL, "cannot be off", set(BARCHAN_NETWORK_OFF, NULL, NULL));
    err = (barchan_error){0};
    refused(BARCHAN_EINVAL, "caps and callbacks stay",
            barchan_sandbox_set_network(sbx, BARCHAN_NETWORK_ALLOW, &caps, &err));
    talk_says("served.example", net_port(server), GET("served.example"), "served by");
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, NULL), 0);
    refused(BARCHAN_EUNSUPPORTED, "without a network", set(BARCHAN_NETWORK_OPEN, NULL, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network rules");
    const TTest *const tests[] = {other_lists_are_for_new_connections, what_stands_goes_on,
                                  deny_can_be_added, what_is_refused, NULL};
    add_tests(suite, "rules", setup_network, teardown_network, tests);
    return run_suite(suite);
}
