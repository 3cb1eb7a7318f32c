/* What a sandbox can reach, and what it cannot: real sandboxes, a real server. Each refusal stands
 * beside the same thing allowed. */
#include "network_support.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

START_TEST(a_host_of_the_list_is_reached_by_its_name)
{
    make_usual_sandbox();
    barchan_exec_result result = talk("served.example", net_port(server), GET("served.example"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "served by the world"));
    was_not_denied(&result);
    ck_assert_int_eq(net_accepted(server), 1);
}
END_TEST

START_TEST(another_host_is_refused_and_told_why)
{
    make_usual_sandbox();
    int port = net_port(server);
    barchan_exec_result result = talk("other.example", port, GET("other.example"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "HTTP/1.1 403 Forbidden"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "X-Barchan-Egress: denied"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "not in the allow-list"));
    was_denied(&result, "other.example", port, "not in the allow-list");
    ck_assert_int_eq(net_accepted(server), 0);
}
END_TEST

START_TEST(web_ports_answer_whatever_the_list)
{
    make_sandbox(BARCHAN_NETWORK_ALLOW, (barchan_network_rules){.allow = NO_ENTRIES});
    barchan_exec_result result = talk("served.example", 80, GET("served.example"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "403 Forbidden"));
    was_denied(&result, "served.example", 80, "not in the allow-list");
}
END_TEST

START_TEST(a_port_that_is_not_listed_is_closed)
{
    make_usual_sandbox();
    barchan_exec_result result = talk("served.example", net_port(server) - 1, "hello");
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "Connection refused"));
    was_not_denied(&result);
}
END_TEST

START_TEST(nobody_is_connected_to_itself)
{
    make_usual_sandbox();
    sh_says("python3 -c 'import socket; at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            "at.connect((\"served.example\", 40000)); print(at.getsockname()[0])'",
            "198.18.0.1\n"); /* each name has an address of its own */
}
END_TEST

START_TEST(deny_wins)
{
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("*.served.example:@", "served.example:@",
                                                          "127.0.0.1:@", NULL),
                                         .deny = entries("other.example", NULL)});
    int port = net_port(server);
    talk_says("served.example", port, GET("served.example"), "served by");
    barchan_exec_result result = talk("other.example", port, GET("other.example"));
    was_denied(&result, "other.example", port, "deny: other.example");
}
END_TEST

START_TEST(a_name_of_a_private_address_needs_the_address_named)
{
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("served.example:@", NULL)});
    int port = net_port(server);
    barchan_exec_result result = talk("served.example", port, GET("served.example"));
    was_denied(&result, "served.example", port, "loopback address 127.0.0.1");
    ck_assert_int_eq(net_accepted(server), 0);
}
END_TEST

START_TEST(open_refuses_private_addresses)
{
    make_sandbox(BARCHAN_NETWORK_OPEN, (barchan_network_rules){0});
    barchan_exec_result result = talk("served.example", 8080, GET("served.example:8080"));
    was_denied(&result, "served.example", 8080, "loopback address");
}
END_TEST

START_TEST(a_name_that_nobody_knows_fails_readably)
{
    /* .invalid has no addresses anywhere (RFC 6761). */
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("no.such.host.invalid", NULL)});
    talk_says("no.such.host.invalid", 80, GET("no.such.host.invalid"), "502 Bad Gateway");
}
END_TEST

START_TEST(a_server_that_is_not_there_fails_readably)
{
    make_usual_sandbox();
    int port = net_port(server);
    net_stop(server);
    server = NULL;
    talk_says("served.example", port, GET("served.example"), "connect: Connection refused");
}
END_TEST

/* Addresses that nobody minds, in a namespace where they are this machine's own. */
static int enter_network(void)
{
    net_stop(server);
    server = NULL;
    if (unshare(CLONE_NEWNET) < 0) return skip("a network namespace needs root");
    ck_assert_int_eq(system("ip link set lo up && ip addr add 1.2.3.4/32 dev lo && "
                            "ip addr add 10.9.8.7/32 dev lo"),
                     0);
    return 0;
}

START_TEST(public_addresses_of_this_machine_are_its_own)
{
    if (enter_network()) return;
    server = net_start_at(NET_HTTP, "the world", "1.2.3.4");
    static const char *const hosts[] = {"served.example=1.2.3.4", NULL};
    int port = net_port(server);
    make_sandbox(
        BARCHAN_NETWORK_ALLOW,
        (barchan_network_rules){.allow = entries("served.example:@", NULL), .hosts = hosts});
    barchan_exec_result result = talk("served.example", port, GET("served.example"));
    was_denied(&result, "served.example", port, "an address of this machine");
    ck_assert_int_eq(net_accepted(server), 0);
    barchan_sandbox_destroy(sbx);
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("served.example:@", "1.2.3.4:@", NULL),
                                         .hosts = hosts});
    talk_says("served.example", port, GET("served.example"), "served by");
}
END_TEST

START_TEST(an_address_of_the_list_is_reached_by_its_number)
{
    if (enter_network()) return;
    server = net_start_at(NET_HTTP, "the world", "10.9.8.7");
    int port = net_port(server);
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("10.9.8.0/24:@", NULL)});
    talk_says("10.9.8.7", port, GET("10.9.8.7"), "served by");
    barchan_exec_result result = talk("10.9.8.7", 80, GET("10.9.8.7"));
    was_denied(&result, "10.9.8.7", 80, "private address 10.9.8.7");
    result = talk("10.9.7.7", port, GET("10.9.7.7"));
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "unreachable"));
    was_not_denied(&result);
    ck_assert_int_eq(net_accepted(server), 1);
}
END_TEST

/* ---- what a program says must be for the host ---- */

START_TEST(the_host_header_must_match)
{
    make_usual_sandbox();
    int port = net_port(server);
    barchan_exec_result result = talk("served.example", port, GET("other.example"));
    ck_assert_ptr_nonnull(strstr(result.out.data, "403 Forbidden"));
    was_denied(&result, "served.example", port, "another host: other.example");
    result = talk("served.example", port,
                  "CONNECT served.example:1 HTTP/1.1\\r\\nHost: served.example\\r\\n\\r\\n");
    was_denied(&result, "served.example", port, "CONNECT");
    talk_says("served.example", port, "GET / HTTP/1.0\\r\\n\\r\\n", "served by");
}
END_TEST

START_TEST(each_request_of_a_connection_must_match)
{
    serve_kind(NET_ECHO);
    make_usual_sandbox();
    int port = net_port(server);
    static const char code[] =
        "import socket, sys\n"
        "s = socket.create_connection(('served.example', int(sys.argv[1])))\n"
        "for host in sys.argv[2:]:\n"
        "    request = b'POST / HTTP/1.1\\r\\nHost: %s\\r\\nContent-Length: 100000\\r\\n\\r\\n'\n"
        "    request = request % host.encode() + b'x' * 100000\n"
        "    s.sendall(request); left = len(request)\n"
        "    while left > 0:\n"
        "        data = s.recv(left)\n"
        "        if not data: sys.exit('closed')\n"
        "        left -= len(data)\n"
        "print('all')\n";
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    barchan_exec_result result = run(
        OPTIONS(.argv = ARGV("python3", "-c", code, number, "served.example", "SERVED.example")));
    ck_assert_msg(strcmp(result.out.data, "all\n") == 0, "%s", result.err_out.data);
    was_not_denied(&result);
    result = run(
        OPTIONS(.argv = ARGV("python3", "-c", code, number, "served.example", "other.example")));
    ck_assert_int_eq(result.exit_code, 1);
    was_denied(&result, "served.example", port, "another host: other.example");
}
END_TEST

/* Behind one nothing is a request; behind a wish that the server ignores, everything is. */
START_TEST(a_websocket_is_the_servers_to_grant)
{
    static const char code[] =
        "import socket, sys\n"
        "s = socket.create_connection(('served.example', int(sys.argv[1])))\n"
        "wish = b'GET / HTTP/1.1\\r\\nHost: served.example\\r\\nUpgrade: websocket\\r\\n\\r\\n'\n"
        "other = b'GET / HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n'\n"
        "got = b''\n"
        "if sys.argv[2] == 'late':\n"
        "    s.sendall(wish); got += s.recv(65536); s.sendall(other)\n"
        "else:\n"
        "    s.sendall(wish + other)\n"
        "while other not in got:\n"
        "    data = s.recv(65536)\n"
        "    if not data: sys.exit('closed')\n"
        "    got += data\n";
    for (int i = 0; i < 4; i++) {
        int granted = i < 2;
        char number[16];
        serve_kind(granted ? NET_SWITCH : NET_ECHO);
        make_usual_sandbox();
        int port = net_port(server);
        snprintf(number, sizeof number, "%d", port);
        barchan_exec_result result =
            run(OPTIONS(.argv = ARGV("python3", "-c", code, number, i % 2 ? "late" : "early")));
        ck_assert_msg((result.exit_code == 0) == granted, "%d: %s", i, result.err_out.data);
        if (granted) {
            was_not_denied(&result);
        } else {
            was_denied(&result, "served.example", port, "another host: other.example");
        }
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
    }
}
END_TEST

START_TEST(the_server_name_of_tls_must_match)
{
    serve_kind(NET_ECHO);
    make_usual_sandbox();
    char command[512];
    snprintf(command, sizeof command,
             "openssl s_client -connect served.example:%d -servername other.example </dev/null",
             net_port(server));
    barchan_exec_result result = sh(command);
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "alert access denied"));
    was_denied(&result, "served.example", net_port(server), "another host: other.example");
    snprintf(command, sizeof command,
             "openssl s_client -connect served.example:%d -noservername </dev/null",
             net_port(server));
    result = sh(command);
    was_denied(&result, "served.example", net_port(server), "without a server name");
    snprintf(command, sizeof command,
             "openssl s_client -connect served.example:%d -servername served.example </dev/null",
             net_port(server));
    result = sh(command);
    was_not_denied(&result); /* the server is no TLS server, but it was reached */
}
END_TEST

START_TEST(web_ports_carry_their_protocols_only)
{
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("served.example", "127.0.0.1", NULL)});
    /* Nothing listens at the host's port 80 in most places; what is said is looked at only once a
     * connection stands, so the refusal that is certain is that of another protocol at 443. */
    barchan_exec_result result = talk("other.example", 443, "SSH-2.0-x\\r\\n");
    ck_assert_uint_eq(result.out.len, 0);
    was_denied(&result, "other.example", 443, "not in the allow-list");
}
END_TEST

/* ---- what is not a name ---- */

START_TEST(numbers_are_unreachable)
{
    make_usual_sandbox();
    static const char *const commands[] = {
        "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'",
        "bash -c 'exec 3<>/dev/tcp/169.254.169.254/80'",
        "bash -c 'exec 3<>/dev/tcp/10.0.0.1/80'",
        "bash -c 'exec 3<>/dev/udp/192.0.2.1/53 && echo x >&3'",
        "bash -c 'exec 3<>/dev/tcp/2001:db8::1/443'",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        barchan_exec_result result = sh(commands[i]);
        ck_assert_msg(strstr(result.err_out.data, "unreachable") != NULL, "%s: %s", commands[i],
                      result.err_out.data);
        was_not_denied(&result);
    }
    barchan_exec_result result = sh("bash -c 'exec 3<>/dev/tcp/198.18.77.77/80 && cat <&3'");
    was_denied(&result, "198.18.77.77", 80, "no name leads to this address");
}
END_TEST

START_TEST(its_own_loopback_is_its_own)
{
    make_usual_sandbox();
    int port = net_port(server);
    sh_says("python3 -m http.server 8099 --bind 127.0.0.1 >/dev/null 2>&1 & "
            "for i in $(seq 50); do "
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8099' 2>/dev/null && echo up && break; "
            "sleep 0.1; done",
            "up\n");
    barchan_exec_result result = talk("127.0.0.1", port, GET("127.0.0.1"));
    ck_assert_uint_eq(result.out.len, 0); /* the host's server has the same port */
    was_not_denied(&result);
    ck_assert_int_eq(net_accepted(server), 0);
}
END_TEST

START_TEST(names_get_addresses_and_nothing_else)
{
    make_usual_sandbox();
    sh_says("getent ahostsv4 served.example | grep -c '^198.18'", "3\n");
    sh_says("getent ahostsv6 served.example | grep -v 198.18 | wc -l", "0\n");
    sh_says("getent hosts served.example | cut -d' ' -f1 > a; getent hosts other.example > b; "
            "getent hosts served.example | cut -d' ' -f1 | cmp a - && echo same",
            "same\n");
    sh_says("getent hosts localhost | head -c 3", "::1");
}
END_TEST

START_TEST(without_a_network_there_is_nothing)
{
    barchan_error err = {0};
    make_usual_sandbox();
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, &err), 0);
    barchan_exec_result result = sh("getent hosts served.example");
    ck_assert_int_eq(result.exit_code, 2);
    was_not_denied(&result);
    result = sh("bash -c 'exec 3<>/dev/tcp/127.0.0.1/80'");
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "Connection refused"));
    was_not_denied(&result);
    result = sh("bash -c 'exec 3<>/dev/tcp/198.18.0.1/80'");
    ck_assert_ptr_nonnull(strstr(result.err_out.data, "unreachable"));
    was_not_denied(&result);
}
END_TEST

START_TEST(a_command_can_be_without)
{
    make_usual_sandbox();
    static const char code[] = "import socket\n"
                               "for f in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n"
                               "    try: socket.socket(f); print('yes')\n"
                               "    except PermissionError: print('no')\n";
    static const char *const expected[] = {"yes\nyes\nyes\n", "no\nno\nyes\n"};
    for (int off = 0; off < 2; off++) {
        barchan_exec_result result =
            run(OPTIONS(.argv = ARGV("python3", "-c", code), .network_off = off));
        ck_assert_str_eq(result.out.data, expected[off]);
        barchan_exec_result_clear(&result);
    }
}
END_TEST

/* ---- malformed profiles ---- */

static void refused(barchan_network mode, const barchan_network_rules *rules, int code,
                    const char *words)
{
    barchan_error err = {0};
    barchan_sandbox *none;
    int rc =
        barchan_sandbox_create(&none, rt, PROFILE(.network = mode, .network_rules = rules), &err);
    ck_assert_int_eq(rc, code);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' is missing in: %s", words, err.message);
}

#define RULES(...) \
    (&(barchan_network_rules){.struct_size = sizeof(barchan_network_rules), __VA_ARGS__})

START_TEST(malformed_rules_are_refused)
{
    refused(BARCHAN_NETWORK_ALLOW, RULES(.allow = ARGV("https://a.example/")), BARCHAN_EINVAL,
            "https://a.example/");
    refused(BARCHAN_NETWORK_ALLOW, RULES(.allow = ARGV("*")), BARCHAN_EINVAL, "'*'");
    refused(BARCHAN_NETWORK_OPEN, RULES(.deny = ARGV("10.0.0.0/99")), BARCHAN_EINVAL,
            "10.0.0.0/99");
    refused(BARCHAN_NETWORK_OPEN, RULES(.hosts = ARGV("a.example")), BARCHAN_EINVAL,
            "name=address");
    refused(BARCHAN_NETWORK_OPEN, RULES(.hosts = ARGV("a.example=b.example")), BARCHAN_EINVAL,
            "address in numbers");
    refused(BARCHAN_NETWORK_OPEN, RULES(.max_connections = 100000), BARCHAN_EINVAL,
            "max_connections");
    refused(BARCHAN_NETWORK_OFF, RULES(.allow = NO_ENTRIES), BARCHAN_EINVAL, "not off");
    refused((barchan_network)9, NULL, BARCHAN_EINVAL, "unknown network profile");
}
END_TEST

START_TEST(a_mode_can_be_described)
{
    barchan_error err = {0};
    char *json = NULL;
    const barchan_network_rules *rules =
        RULES(.allow = ARGV("B.example."), .deny = ARGV("10.0.0.0/8"));
    ck_assert_int_eq(barchan_network_describe(BARCHAN_NETWORK_ALLOW, rules, &json, &err), 0);
    ck_assert_str_eq(json, "{\"mode\":\"allow\",\"allow\":[\"b.example\"],"
                           "\"deny\":[\"10.0.0.0/8\"],\"sources\":[],\"notes\":[]}");
    barchan_free(json);
    ck_assert_int_eq(barchan_network_describe(BARCHAN_NETWORK_RESTRICTED, rules, &json, &err), 0);
    ck_assert_ptr_nonnull(strstr(json, "{\"mode\":\"restricted\",\"allow\":[\"b.example\""));
    barchan_free(json);
    ck_assert_int_eq(barchan_network_describe(BARCHAN_NETWORK_OFF, rules, &json, &err),
                     BARCHAN_EINVAL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_host_of_the_list_is_reached_by_its_name,
                                  another_host_is_refused_and_told_why,
                                  web_ports_answer_whatever_the_list,
                                  a_port_that_is_not_listed_is_closed,
                                  nobody_is_connected_to_itself,
                                  deny_wins,
                                  a_name_of_a_private_address_needs_the_address_named,
                                  open_refuses_private_addresses,
                                  a_name_that_nobody_knows_fails_readably,
                                  a_server_that_is_not_there_fails_readably,
                                  public_addresses_of_this_machine_are_its_own,
                                  an_address_of_the_list_is_reached_by_its_number,
                                  the_host_header_must_match,
                                  each_request_of_a_connection_must_match,
                                  a_websocket_is_the_servers_to_grant,
                                  the_server_name_of_tls_must_match,
                                  web_ports_carry_their_protocols_only,
                                  numbers_are_unreachable,
                                  its_own_loopback_is_its_own,
                                  names_get_addresses_and_nothing_else,
                                  without_a_network_there_is_nothing,
                                  a_command_can_be_without,
                                  malformed_rules_are_refused,
                                  a_mode_can_be_described,
                                  NULL};
    Suite *suite = suite_create("network");
    add_tests(suite, "network", setup_network, teardown_network, tests);
    return run_suite(suite);
}
