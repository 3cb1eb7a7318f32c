/* Many requests of a connection, and bodies: the value is where it belongs, whatever a program
 * sends. */
#include "secret_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bodies ---- */

START_TEST(a_request_with_a_body_is_the_last)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw("send(head('POST /a', auth() + 'Content-Length: 3\\r\\n') + 'abc' + head('GET /b', "
            "auth()))\n"
            "print(receive())\n"
            "connect(); send(head('GET /c') + head('POST /d', 'Transfer-Encoding: chunked\\r\\n')\n"
            "                + '1\\r\\nx\\r\\n0\\r\\n\\r\\n' + head('GET /e'))\n"
            "print(receive())\n"
            "connect(); send(head('POST /f', 'Content-Length: 0\\r\\n') + head('GET /g'))\n"
            "print(receive().count('served'))\n");
    shell("python3 raw.py $AT", "Connection: close\r\n\r\nserved\n<end>\n");
    ck_assert_int_eq(tls_has_seen(server, "POST /a"), 1);
    ck_assert_int_eq(tls_has_seen(server, "Connection: close\r\n"), 2);
    ck_assert_int_eq(tls_has_seen(server, "GET /b"), 0);
    ck_assert_int_eq(tls_has_seen(server, "POST /d"), 1);
    ck_assert_int_eq(tls_has_seen(server, "GET /e"), 0);
    ck_assert_int_eq(tls_has_seen(server, "GET /g"), 1); /* a body of no bytes is none */
    /* Real programs make another connection. */
    shell("for i in 1 2 3; do curl -sS " AUTH "-d x=$i $AT/ $AT/; done | grep -c served", "6\n");
}
END_TEST

/* A server that reads no body takes it for requests: one for HEAD, whose answer has no body, and
 * the beginning of one that what came next would have been a field of. */
START_TEST(a_body_that_is_not_read_hides_no_request)
{
    static const char *const paths[] = {"/unread", NULL};
    static const char *const methods[] = {"GET", NULL};
    make_secret_sandbox(SECRET(.paths = paths, .methods = methods));
    put_raw("inner = 'HEAD /unread HTTP/1.1\\r\\nX: y\\r\\n\\r\\nDELETE /unread "
            "HTTP/1.1\\r\\nX-Pad: '\n"
            "send(head('GET /unread', f'Content-Length: {len(inner)}\\r\\n'))\n"
            "print(receive())\n"
            "try: send(inner + head('GET /unread', auth())); print(receive())\n"
            "except OSError: pass\n"
            "connect(); send(head('GET /unread', f'Content-Length: {len(inner)}\\r\\n') + inner\n"
            "                + head('GET /unread', auth()))\n"
            "print(receive())\n");
    shell("python3 raw.py $AT", "GET /unread");
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 0);
    shell("curl -sS " AUTH "$AT/unread", "Bearer ****");
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
}
END_TEST

START_TEST(frames_are_written_anew)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw("send(f'POST /a HTTP/1.1\\r\\nhOST: "
            "\\tSERVED.Example.:{PORT}\\r\\ntransfer-encoding:\\tchunked\\t\\r\\n'\n"
            "     'expect: y 100-continue\\r\\n\\r\\n01\\r\\nx\\r\\n0\\r\\n\\r\\n')\n"
            "print(receive())\n"
            "connect(); send(f'POST /b HTTP/1.1\\r\\nHost: served.example:{PORT}\\r\\n'\n"
            "                'content-length: \\t0000000000000003 \\r\\nEXPECT: "
            "100-Continue\\r\\n\\r\\nabc')\n"
            "print(receive())\n");
    shell("python3 raw.py $AT", "served");
    char host[64];
    snprintf(host, sizeof host, "\r\nHost: served.example:%d\r\n", tls_port(server));
    ck_assert_int_eq(tls_has_seen(server, host), 2);
    ck_assert_int_eq(tls_has_seen(server, "\r\nTransfer-Encoding: chunked\r\n"), 1);
    ck_assert_int_eq(tls_has_seen(server, "\r\nContent-Length: 3\r\n"), 1);
    ck_assert_int_eq(tls_has_seen(server, "\r\nExpect: 100-continue\r\n"), 1);
    ck_assert_int_eq(tls_has_seen(server, "SERVED"), 0);
    ck_assert_int_eq(tls_has_seen(server, "y 100-continue"), 0);
}
END_TEST

/* Wherever a program's chunks end. */
START_TEST(a_placeholder_in_two_chunks_is_told)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw("send(head('POST /', 'Transfer-Encoding: chunked\\r\\n'))\n"
            "for part in TOKEN[:9], TOKEN[9:], '': send(f'{len(part):x}\\r\\n{part}\\r\\n')\n"
            "print(receive())\n");
    shell("python3 raw.py $AT", "served");
    ck_assert_int_eq(told("stands outside"), 1);
}
END_TEST

/* A record for each chunk, and three for its line, byte and end, would keep everybody waiting. */
START_TEST(a_body_in_tiny_chunks_is_gathered)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw(
        "send(head('POST /echo/length', 'Transfer-Encoding: chunked\\r\\n') + '1\\r\\na\\r\\n' * "
        "20000 + '0\\r\\n\\r\\n')\n"
        "print(receive(5).count('1\\r\\na'))\n");
    shell("python3 raw.py $AT", "20000\n");
    ck_assert_int_le(tls_records(server), 200);
}
END_TEST

static int waits_for(void *ud)
{
    return tls_has_seen(server, "GET /wait") == *(const int *)ud;
}

static int has_gone(void *ud)
{
    return tls_has_seen(server, "<gone>") == *(const int *)ud;
}

/* A server hears that its client has left, as without us: by a goodbye, by its end, by a kill. */
START_TEST(what_nobody_waits_for_is_given_up)
{
    static const struct {
        const char *waits, *leaves;
    } ways[] = {{"python3 raw.py $AT", "touch leave"},
                {"curl -sS " AUTH "$AT/wait", "pkill -x curl"},
                {"curl -sS " AUTH "$AT/wait", "pkill -9 -x curl"}};
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw("send(head('GET /wait', auth()) + '\\r\\n')\n" /* an empty line is no further request */
            "while not os.path.exists('leave'): time.sleep(0.01)\n"
            "s.close()\n");
    for (int i = 0; i < 3; i++) {
        struct ended e = {0};
        char command[256];
        snprintf(command, sizeof command, "AT=https://served.example:%d; %s", tls_port(server),
                 ways[i].waits);
        ck_assert_int_eq(
            barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = command), note_end, &e, NULL),
            0);
        ck_assert(wait_until(waits_for, &(int){1 + i}, 20000));
        shell(ways[i].leaves, NULL);
        ck_assert(wait_until(has_gone, &(int){1 + i}, 20000));
        ck_assert(wait_until(exec_ended, &e, 20000));
        barchan_exec_result_clear(&e.result);
    }
    ck_assert_int_eq(told("connected served.example"), 3);
    ck_assert_int_eq(told("closed served.example"), 3);
    /* One that says no more and reads on has its answer. */
    put_raw(BY_HAND "c.write(head('GET /echo/length', auth()).encode() * 2) # both are answered\n"
                    "say_no_more()\n"
                    "got = ''\n"
                    "while got.count('Bearer ****') < 2:\n"
                    "    got += until(c.read, 4096).decode()\n"
                    "print(got.count('Bearer ****'))\n");
    shell("python3 raw.py $AT", "2\n");
}
END_TEST

/* ---- connections ---- */

/* Each costs as much as a kilobyte of data, and a read takes in all that are there. */
START_TEST(keys_are_not_updated_without_end)
{
    static const char program[] =
        "import ctypes\n"
        "P, S, C = ctypes.c_void_p, ctypes.CDLL('libssl.so.3'), ctypes.CDLL('libcrypto.so.3')\n"
        "for f in S.TLS_client_method, S.SSL_CTX_new, S.SSL_new, C.BIO_new_socket: f.restype = P\n"
        "s = socket.create_connection(('served.example', PORT))\n"
        "c = P(S.SSL_new(P(S.SSL_CTX_new(P(S.TLS_client_method())))))\n"
        "b = P(C.BIO_new_socket(s.fileno(), 0)); S.SSL_set_bio(c, b, b)\n"
        "S.SSL_ctrl(c, 55, 0, b'served.example'); assert S.SSL_connect(c) == 1\n"
        "q = head('GET /', auth()).encode(); piece = ctypes.create_string_buffer(4096)\n"
        "for updates in 5, 100:\n"
        "    for i in range(updates):\n"
        "        S.SSL_key_update(c, 0); S.SSL_do_handshake(c)\n"
        "    S.SSL_write(c, q, len(q)); got = b''\n"
        "    while not got.endswith(b'served\\n'):\n"
        "        n = S.SSL_read(c, piece, 4096)\n"
        "        if n <= 0: break\n"
        "        got += piece.raw[:n]\n"
        "    print(updates, len(got) > 0)\n";
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw(program);
    shell("python3 raw.py $AT", "5 True\n100 False\n");
}
END_TEST

/* Otherwise a server that takes something else first could be spoken to around us. */
START_TEST(nothing_but_tls)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS http${AT#https}/", "only TLS is spoken with a host with secrets");
    put_raw("s = socket.create_connection(('served.example', PORT))\n"
            "s.sendall(b'PROXY TCP4 1.2.3.4 1.2.3.4 1 1\\r\\n')\n"
            "print('it said', repr(receive(2)))\n");
    shell("python3 raw.py $AT", "it said '");
    ck_assert_int_eq(told("denied served.example"), 2);
    ck_assert_int_eq(tls_has_seen(server, "GET"), 0);
}
END_TEST

/* A server ends an idle connection just as another request comes: programs try again when not a
 * byte of an answer has. */
START_TEST(a_connection_that_was_idle_for_too_long)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS -w '%{http_code}\n' " AUTH "$AT/once $AT/a $AT/once $AT/b | grep -c 200",
          "4\n");
    ck_assert_int_eq(tls_has_seen(server, "GET /a"), 1);
    ck_assert_int_eq(told("ended before it answered"), 2);
}
END_TEST

/* ---- what is told ---- */

/* More is noted of each request than there would be room to tell at once. */
START_TEST(each_use_is_told)
{
    enum { REQUESTS = 200 };
    barchan_error err = {0};
    barchan_secret secrets[16];
    char names[16][16];
    const char *const hosts[] = {at_port("served.example"), NULL};
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], i == 0 ? "TOKEN" : "T%d", i);
        secrets[i] = SECRET(.name = names[i], .value = VALUE, .value_len = strlen(VALUE),
                            .hosts = hosts, .ca_file = tls_ca_file(server));
    }
    ck_assert_msg(try_secret_sandbox(secrets, 16, &err) == 0, "%s", err.message);
    put_raw("names = ['TOKEN'] + [f'T{i}' for i in range(1, 16)]\n"
            "all = ''.join(f'X-{n}: {os.environ[n]}\\r\\n' for n in names)\n"
            "for i in range(200):\n"
            "    send(head('GET /', all + auth()))\n"
            "print(receive(2).count('served'))\n");
    shell("python3 raw.py $AT", "200\n");
    ck_assert_int_eq(tls_has_seen(server, REAL), REQUESTS);
    ck_assert_int_eq(told("secret TOKEN: put into"), REQUESTS);
    ck_assert_int_eq(told("stands outside"), 16 * REQUESTS);
}
END_TEST

START_TEST(connections_that_fail_are_told_as_closed)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sSi $AT/ -H 'Upgrade: x' -H 'Connection: upgrade'", "403 Forbidden");
    shell("curl -sS --cacert /dev/null $AT/ || true", NULL);
    ck_assert_int_eq(told("connected served.example"), told("closed served.example"));
    ck_assert_int_eq(told("connected served.example"), 2);
}
END_TEST

/* ---- programs ---- */

START_TEST(old_programs_and_others_trust)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -0 -sS $AT/", "served");
    barchan_exec_result r = sh("command -v wget");
    if (r.exit_code == 0 || !skip("wget is not in the sandbox")) {
        shell("wget -qO- $AT/", "served");
    }
    barchan_exec_result_clear(&r);
    shell("echo $npm_config_cafile", "/run/barchan/ca-bundle.pem");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_request_with_a_body_is_the_last,
                                  a_body_in_tiny_chunks_is_gathered,
                                  a_placeholder_in_two_chunks_is_told,
                                  what_nobody_waits_for_is_given_up,
                                  keys_are_not_updated_without_end,
                                  nothing_but_tls,
                                  a_body_that_is_not_read_hides_no_request,
                                  frames_are_written_anew,
                                  a_connection_that_was_idle_for_too_long,
                                  each_use_is_told,
                                  connections_that_fail_are_told_as_closed,
                                  old_programs_and_others_trust,
                                  NULL};
    Suite *suite = suite_create("secret stream");
    add_tests(suite, "secret stream", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
