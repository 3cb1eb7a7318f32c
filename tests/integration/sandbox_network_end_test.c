/* How connections of a sandbox end: each end hears how the other did, and none outlives its program
 * or its sandbox. */
#include "network_support.h"

#include <stdio.h>
#include <string.h>

static int all_closed(void *ud)
{
    return net_accepted(ud) > 0 && net_open(ud) == 0;
}

/* ---- resets ---- */

static int has_reset(void *ud)
{
    return net_resets(ud) > 0;
}

/* A program that has said "go on" and been greeted, and what it does then. */
static barchan_exec_result greeted(net_kind kind, const char *then)
{
    char program[1024], command[64];
    serve_kind(kind);
    make_usual_sandbox();
    snprintf(program, sizeof program,
             "import socket, struct, sys\n"
             "s = socket.create_connection(('served.example', int(sys.argv[1])))\n"
             "s.recv(64); s.sendall(b'go on')\n"
             "%s\n",
             then);
    file_put_text("/workspace/greeted.py", program);
    snprintf(command, sizeof command, "python3 greeted.py %d", net_port(server));
    return sh(command);
}

/* Else what was cut off would look whole to the other end. */
START_TEST(a_servers_reset_is_one_to_the_program)
{
    barchan_exec_result result = greeted(NET_BREAK, "print(s.recv(64))");
    ck_assert_str_eq(result.out.data, "");
    ck_assert_msg(strstr(result.err_out.data, "ConnectionResetError") != NULL, "%s",
                  result.err_out.data);
    barchan_exec_result_clear(&result);
}
END_TEST

START_TEST(an_orderly_end_is_no_reset)
{
    barchan_exec_result result = greeted(NET_GREET, "s.recv(5, socket.MSG_WAITALL)\n"
                                                    "s.shutdown(socket.SHUT_WR)\n"
                                                    "print(s.recv(64))");
    ck_assert_str_eq(result.out.data, "b''\n");
    barchan_exec_result_clear(&result);
    ck_assert(wait_until(all_closed, server, 10000));
    ck_assert_int_eq(net_resets(server), 0);
}
END_TEST

START_TEST(a_programs_reset_is_one_to_the_server)
{
    barchan_exec_result result =
        greeted(NET_GREET, "s.recv(5, socket.MSG_WAITALL)\n"
                           "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, "
                           "struct.pack('ii', 1, 0))");
    ck_assert_int_eq(result.exit_code, 0);
    barchan_exec_result_clear(&result);
    ck_assert(wait_until(has_reset, server, 10000));
}
END_TEST

/* ---- with those who made them ---- */

static int one_open(void *ud)
{
    barchan_network_usage usage;
    (void)ud;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    int is = usage.count == 1 && usage.hosts[0].connections == 1 && usage.open == 1;
    barchan_network_usage_clear(&usage);
    return is;
}

/* In a sandbox of its own: connects, and stays. */
static const char *connected_command(void)
{
    static char command[128];
    serve_kind(NET_ECHO);
    make_usual_sandbox();
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/served.example/%d; echo x >&3; sleep 60'",
             net_port(server));
    return command;
}

START_TEST(connections_end_with_the_sandbox)
{
    const char *command = connected_command();
    struct ended ended = {0};
    ck_assert_int_eq(
        barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = command), note_end, &ended, NULL),
        0);
    ck_assert(wait_until(one_open, NULL, 10000));
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(all_closed, server, 10000));
    ck_assert(wait_until(exec_ended, &ended, 10000));
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_eq(usage.open, 0);
    ck_assert_uint_eq(usage.hosts[0].connections, 1);
    barchan_network_usage_clear(&usage);
}
END_TEST

START_TEST(a_killed_command_takes_its_connections)
{
    const char *command = connected_command();
    barchan_exec_result result =
        run(OPTIONS(.command = command, .timeout_ms = 1000, .grace_ms = -1));
    ck_assert_int_eq(result.reason, BARCHAN_EXEC_TIMEOUT);
    barchan_exec_result_clear(&result);
    ck_assert(wait_until(all_closed, server, 10000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network_end");
    const TTest *const tests[] = {an_orderly_end_is_no_reset,
                                  a_servers_reset_is_one_to_the_program,
                                  a_programs_reset_is_one_to_the_server,
                                  connections_end_with_the_sandbox,
                                  a_killed_command_takes_its_connections,
                                  NULL};
    add_tests(suite, "network_end", setup_network, teardown_network, tests);
    return run_suite(suite);
}
