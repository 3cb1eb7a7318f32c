/* Guests that want to be understood in two ways: by the library, which allows served.example, and
 * by the server, which would serve other.example. What is refused reaches the server with no byte;
 * each kind stands beside the same thing rightly said, which the server gives back. */
#include "network_support.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void make_echoing(void)
{
    serve_kind(NET_ECHO);
    make_usual_sandbox();
}

static barchan_exec_result say(const char *cases)
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%d %s", net_port(server), cases);
    return run_script("network_said.py", arguments);
}

/* ---- what a program says first ---- */

START_TEST(what_is_rightly_said_arrives)
{
    make_echoing();
    barchan_exec_result result = say("fine fine_slowly");
    each_was(&result, "echo", "", 28);
    was_not_denied(&result);
}
END_TEST

START_TEST(tls_for_another_host_is_refused)
{
    make_echoing();
    barchan_exec_result result = say("tls");
    each_was(&result, "alert", "", 13);
    ck_assert_uint_ge(result.denied_count, 1);
    barchan_exec_result_clear(&result);
    ck_assert_int_eq(net_received(server), 0);
}
END_TEST

START_TEST(http_for_another_host_is_refused)
{
    make_echoing();
    barchan_exec_result result = say("http");
    each_was(&result, "403", "", 35);
    ck_assert_uint_ge(result.denied_count, 1);
    barchan_exec_result_clear(&result);
    ck_assert_int_eq(net_received(server), 0);
}
END_TEST

START_TEST(it_is_refused_byte_by_byte)
{
    make_echoing();
    barchan_exec_result result = say("bad_slowly");
    each_was(&result, "alert", "403", 40);
    barchan_exec_result_clear(&result);
    ck_assert_int_eq(net_received(server), 0);
}
END_TEST

START_TEST(what_ends_within_its_first_words_is_refused)
{
    make_echoing();
    barchan_exec_result result = say("ended");
    each_was(&result, "alert", "403", 2);
    barchan_exec_result_clear(&result);
    result = say("letter");
    each_was(&result, "closed", "", 2);
    was_denied(&result, "served.example", net_port(server), "ended within its first words");
    ck_assert_int_eq(net_received(server), 0);
}
END_TEST

/* ---- what it says later ---- */

START_TEST(later_requests_arrive)
{
    make_echoing();
    barchan_exec_result result = say("later_fine later_fine_slowly");
    each_was(&result, "echo", "", 11);
    was_not_denied(&result);
    ck_assert(net_heard_other(server)); /* in bodies, where it means nothing */
}
END_TEST

START_TEST(later_requests_for_another_host_are_refused)
{
    make_echoing();
    barchan_exec_result result = say("later_bad later_bad_slowly");
    each_was(&result, "closed", "", 44);
    ck_assert(!net_heard_other(server));
    ck_assert_uint_ge(result.denied_count, 1);
    barchan_exec_result_clear(&result);
}
END_TEST

/* ---- what a program asks the name service ---- */

static barchan_exec_result ask(const char *cases)
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%d %s", net_port(server), cases);
    return run_script("network_names.py", arguments);
}

START_TEST(odd_questions_get_no_address)
{
    make_echoing();
    barchan_exec_result result = ask("fine");
    each_was(&result, "address", "", 6);
    was_not_denied(&result);
    result = ask("nothing");
    each_was(&result, "nothing", "", 9);
    was_not_denied(&result);
    result = ask("odd");
    each_was(&result, "error", "silence", 23);
    was_not_denied(&result);
    result = ask("fine"); /* it is still there */
    each_was(&result, "address", "", 6);
    was_not_denied(&result);
}
END_TEST

START_TEST(there_is_no_other_name_server)
{
    make_echoing();
    barchan_exec_result result = ask("other_servers");
    each_was(&result, "silence", "", 13);
    barchan_exec_result_clear(&result);
    ck_assert_int_eq(net_accepted(server), 0);
}
END_TEST

START_TEST(a_flood_of_names_moves_no_name_in_use)
{
    make_echoing();
    barchan_exec_result result = ask("flood");
    each_was(&result, "echo", "", 5);
    was_not_denied(&result);
}
END_TEST

START_TEST(an_older_connection_gives_up_no_name)
{
    make_echoing();
    barchan_exec_result result = ask("stale");
    each_was(&result, "echo", "", 2);
    barchan_exec_result_clear(&result);
}
END_TEST

START_TEST(a_name_that_was_given_up_leads_nowhere)
{
    make_echoing();
    barchan_exec_result result = ask("given_up");
    each_was(&result, "closed", "", 1);
    ck_assert_uint_eq(result.denied_count, 1);
    ck_assert_int_eq(net_accepted(server), 0);
    barchan_exec_result_clear(&result);
}
END_TEST

/* ---- what a program does to the network ---- */

/* The same as the root of a network of its own. */
static void is_possible_elsewhere(const char *what, int at_least)
{
    char command[1024], text[4096];
    snprintf(command, sizeof command,
             "unshare --user --map-root-user --net sh -c 'ip link set lo up && "
             "exec python3 %s/network_rights.py %d %s oracle'",
             GUEST_SCRIPTS, net_port(server), what);
    FILE *pipe = popen(command, "re");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    if (pclose(pipe) != 0) {
        printf("SKIP no oracle: namespaces are not allowed here\n");
        return;
    }
    each_was(&(barchan_exec_result){.out.data = text}, "done", "", at_least);
}

static barchan_exec_result attempt(const char *what)
{
    char arguments[256];
    snprintf(arguments, sizeof arguments, "%d %s", net_port(server), what);
    return run_script("network_rights.py", arguments);
}

START_TEST(its_network_is_not_its_own_to_change)
{
    make_echoing();
    barchan_exec_result result = attempt("changes");
    each_was(&result, "denied", "", 12);
    was_not_denied(&result);
    is_possible_elsewhere("changes", 11);
    result = say("fine");
    each_was(&result, "echo", "", 14);
    was_not_denied(&result);
}
END_TEST

START_TEST(the_librarys_places_cannot_be_taken)
{
    make_echoing();
    barchan_exec_result result = say("fine"); /* so that 198.18.1.0 is a name's */
    barchan_exec_result_clear(&result);
    result = attempt("places");
    each_was(&result, "denied", "", 6);
    was_not_denied(&result);
    is_possible_elsewhere("places", 6);
    result = attempt("own");
    each_was(&result, "done", "", 1);
    was_not_denied(&result);
}
END_TEST

static int bind_abstract(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
                     0);
    ck_assert_int_eq(listen(fd, 10), 0);
    return fd;
}

START_TEST(servers_of_others_are_out_of_reach)
{
    barchan_sandbox *first;
    char name[64], words[128];
    make_echoing();
    snprintf(words, sizeof words, "python3 network_storm.py %d listen 8600", net_port(server));
    put_script("network_storm.py");
    barchan_process *listening;
    ck_assert_int_eq(
        barchan_sandbox_spawn(&listening, sbx, OPTIONS(.command = words), NULL, NULL, NULL), 0);
    sh_says("for i in $(seq 100); do bash -c 'exec 3<>/dev/tcp/127.0.0.1/8602' 2>/dev/null || "
            "bash -c 'exec 3<>/dev/tcp/198.18.1.0/8602' 2>/dev/null && echo up && break; "
            "sleep 0.1; done",
            "up\n");
    snprintf(name, sizeof name, "barchan-host-%d", (int)getpid());
    int abstract = bind_abstract(name);
    snprintf(words, sizeof words, "servers 8600 barchan-test %s", name);
    barchan_exec_result result = attempt(words);
    ck_assert_msg(strstr(result.out.data, "server_0 done\nserver_1 done\nserver_2 done\n"
                                          "barchan-test done\n") != NULL,
                  "%s%s", result.out.data, result.err_out.data);
    barchan_exec_result_clear(&result);
    first = sbx;
    make_usual_sandbox();
    result = attempt(words);
    each_was(&result, "denied", "", 5);
    was_not_denied(&result);
    barchan_process_destroy(listening);
    barchan_sandbox_destroy(first);
    close(abstract);
}
END_TEST

START_TEST(no_network_after_one_with_a_network)
{
    for (int i = 0; i < 10; i++) {
        barchan_error err = {0};
        make_usual_sandbox();
        sh_says("grep -c : /proc/net/tcp", "3\n"); /* its ports, of the library */
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
        ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, &err), 0);
        sh_says("grep -c : /proc/net/tcp; cat /proc/net/route | wc -l; "
                "bash -c 'exec 3<>/dev/tcp/198.18.1.0/80' 2>&1 | grep -q unreachable && echo yes",
                "0\n1\nyes\n");
        barchan_sandbox_destroy(sbx);
        sbx = NULL;
    }
}
END_TEST

/* A relay of the sandbox's own, by CONNECT or without a word, is one more program in it: what it
 * connects to is decided as if it had been asked for directly. */
START_TEST(a_relay_inside_changes_nothing)
{
    static const char relay[] =
        "import socket, sys, threading\n"
        "PORT = int(sys.argv[1])\n"
        "def pump(a, b):\n"
        "    while data := a.recv(65536): b.sendall(data)\n"
        "    b.shutdown(socket.SHUT_WR)\n"
        "def serve(c, host):\n"
        "    if host is None:\n"
        "        head = c.recv(4096).decode()\n"
        "        host = head.split()[1].split(':')[0]\n"
        "        c.sendall(b'HTTP/1.1 200 Connected\\r\\n\\r\\n')\n"
        "    o = socket.create_connection((host, PORT))\n"
        "    threading.Thread(target=pump, args=(c, o), daemon=True).start()\n"
        "    pump(o, c)\n"
        "def listen(host):\n"
        "    l = socket.create_server(('127.0.0.1', 0))\n"
        "    def accept():\n"
        "        while True: threading.Thread(target=serve, args=(l.accept()[0], host), "
        "daemon=True).start()\n"
        "    threading.Thread(target=accept, daemon=True).start()\n"
        "    return l.getsockname()[1]\n"
        "def ask(port, host, connect):\n"
        "    s = socket.create_connection(('127.0.0.1', port)); s.settimeout(5)\n"
        "    if connect:\n"
        "        s.sendall(f'CONNECT {host}:{PORT} HTTP/1.1\\r\\n\\r\\n'.encode()); s.recv(4096)\n"
        "    s.sendall(f'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode())\n"
        "    got = b''\n"
        "    while data := s.recv(4096): got += data\n"
        "    return got.split()[1].decode()\n"
        "by_word = listen(None)\n"
        "for host in ('served.example', 'other.example'):\n"
        "    print(host, ask(listen(host), host, False), ask(by_word, host, True))\n";
    char port[16];
    make_usual_sandbox();
    snprintf(port, sizeof port, "%d", net_port(server));
    barchan_exec_result r = run(OPTIONS(.argv = ARGV("python3", "-c", relay, port)));
    ck_assert_msg(strcmp(r.out.data, "served.example 200 200\nother.example 403 403\n") == 0,
                  "%s%s", r.out.data, r.err_out.data);
    ck_assert_int_eq(net_accepted(server), 2);
    was_denied(&r, "other.example", net_port(server), "not in the allow-list");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_is_rightly_said_arrives,
                                  tls_for_another_host_is_refused,
                                  http_for_another_host_is_refused,
                                  it_is_refused_byte_by_byte,
                                  what_ends_within_its_first_words_is_refused,
                                  later_requests_arrive,
                                  later_requests_for_another_host_are_refused,
                                  odd_questions_get_no_address,
                                  there_is_no_other_name_server,
                                  a_flood_of_names_moves_no_name_in_use,
                                  an_older_connection_gives_up_no_name,
                                  a_name_that_was_given_up_leads_nowhere,
                                  its_network_is_not_its_own_to_change,
                                  the_librarys_places_cannot_be_taken,
                                  servers_of_others_are_out_of_reach,
                                  no_network_after_one_with_a_network,
                                  a_relay_inside_changes_nothing,
                                  NULL};
    Suite *suite = suite_create("network_hostile");
    add_tests(suite, "network_hostile", setup_network, teardown_network, tests);
    return run_suite(suite);
}
