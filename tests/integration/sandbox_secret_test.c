/* Secrets: what a server gets, and what a sandbox never has. Real sandboxes, real programs, a real
 * server with TLS. Each thing that must not happen stands beside the same thing where it does. */
#include "secret_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where it is used ---- */

START_TEST(the_server_gets_the_value_and_the_sandbox_a_placeholder)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("echo \"[$TOKEN]\"", "[barchan-secret-");
    shell("curl -sS " AUTH "$AT/", "served");
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
    ck_assert_int_eq(tls_has_seen(server, "barchan-secret-"), 0);
    ck_assert_int_eq(told("secret served.example"), 1);
    ck_assert_int_eq(told("secret TOKEN: put into Authorization"), 1);
}
END_TEST

START_TEST(programs_trust_what_they_see)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("python3 - $AT <<'EOF'\n"
          "import os, sys, urllib.request\n"
          "r = urllib.request.Request(sys.argv[1] + '/python',\n"
          "    headers={'Authorization': 'Bearer ' + os.environ['TOKEN']})\n"
          "print(urllib.request.urlopen(r).read().decode())\n"
          "EOF",
          "served");
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
    shell("openssl s_client -verify_return_error -brief -connect ${AT#https://} "
          "-servername served.example </dev/null 2>&1",
          "Verification: OK");
    int expected = 1;
    barchan_exec_result result = sh("command -v node >/dev/null && node -e 1");
    if (result.exit_code == 0) {
        shell("node -e 'require(\"https\").get(process.argv[1] + \"/node\", { headers: "
              "{ authorization: \"Bearer \" + process.env.TOKEN } }, r => r.on(\"data\", "
              "d => console.log(String(d))))' $AT",
              "served");
        ck_assert_int_eq(tls_has_seen(server, REAL), ++expected);
    } else {
        skip("node is not in the sandbox");
    }
    barchan_exec_result_clear(&result);
    result = sh("python3 -c 'import requests'");
    if (result.exit_code == 0) {
        shell("python3 -c 'import os, requests, sys; print(requests.get(sys.argv[1], headers="
              "{\"Authorization\": \"Bearer \" + os.environ[\"TOKEN\"]}).text)' $AT/requests",
              "served");
        ck_assert_int_eq(tls_has_seen(server, REAL), ++expected);
    } else {
        skip("Python's requests is not in the sandbox");
    }
    barchan_exec_result_clear(&result);
    result = sh("command -v git");
    if (result.exit_code == 0) { /* no repository there, but it was asked */
        shell("git -c http.extraHeader=\"Authorization: Bearer $TOKEN\" ls-remote $AT/x.git 2>&1",
              NULL);
        ck_assert_int_eq(tls_has_seen(server, "GET /x.git/info/refs"), 1);
        ck_assert_int_eq(tls_has_seen(server, REAL), ++expected);
    } else {
        skip("git is not in the sandbox");
    }
    barchan_exec_result_clear(&result);
}
END_TEST

START_TEST(basic_authorization)
{
    make_secret_sandbox(SECRET(.user = "robot"));
    shell("curl -sS -u \"somebody:$TOKEN\" $AT/", "served");
    /* robot:VALUE */
    ck_assert_int_eq(tls_has_seen(server, "Authorization: Basic cm9ib3Q6czNjcjN0LU1BUktFUi0"), 1);
    shell("curl -sS -u \"somebody:else\" $AT/", "served");
    ck_assert_int_eq(tls_has_seen(server, "Authorization:"), 1);
}
END_TEST

START_TEST(another_header_and_format)
{
    make_secret_sandbox(SECRET(.header = "X-Api-Key", .format = "key={}"));
    shell("curl -sS -H \"x-api-key: key=$TOKEN\" $AT/", "served");
    ck_assert_int_eq(tls_has_seen(server, "X-Api-Key: key=" VALUE "\r\n"), 1);
    shell("curl -sS -H \"X-Api-Key: $TOKEN\" $AT/", "served");
    ck_assert_int_eq(told("stands in another form in X-Api-Key"), 1);
    ck_assert_int_eq(tls_has_seen(server, VALUE), 1);
}
END_TEST

START_TEST(many_requests_of_one_connection)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS " AUTH "$AT/[1-20]", "served");
    ck_assert_int_eq(tls_has_seen(server, REAL), 20);
    ck_assert_int_eq(tls_handshakes(server), 1);
    shell("head -c 300000 /dev/zero | tr '\\0' x >big; curl -sS -H Expect: " AUTH
          "--data-binary @big $AT/echo/length | wc -c",
          "300");
    ck_assert_int_eq(tls_has_seen(server, REAL), 21);
}
END_TEST

START_TEST(rotation_keeps_the_placeholder)
{
    barchan_error err = {0};
    make_secret_sandbox(SECRET(.name = NULL));
    shell("echo $TOKEN >before; curl -sS " AUTH "$AT/", "served");
    static const char second[] = "second-MARKER-value-1234567890";
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "TOKEN", second, strlen(second), &err), 0);
    shell("echo $TOKEN | cmp - before && curl -sS " AUTH "$AT/echo/length", "Bearer ****");
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
    ck_assert_int_eq(tls_has_seen(server, "Bearer second-MARKER-value-1234567890\r\n"), 1);
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "OTHER", second, 20, &err), BARCHAN_ENOTFOUND);
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "TOKEN", second, 15, &err), BARCHAN_EINVAL);
    ck_assert_ptr_null(strstr(err.message, "second"));
    /* The last value may still be shown by a server; setting the same one again changes nothing. */
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "TOKEN", second, strlen(second), &err), 0);
    shell("curl -sS -d " VALUE " $AT/echo/length", "****");
}
END_TEST

START_TEST(seven_older_values_are_masked)
{
    barchan_error err = {0};
    make_secret_sandbox(SECRET(.name = NULL));
    for (char digit = '1'; digit <= '7'; digit++) {
        char value[] = "x-MARKER-value-1234567890";
        value[0] = digit;
        ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "TOKEN", value, strlen(value), &err), 0);
        shell("curl -sS -d " VALUE " $AT/echo/length", "****");
    }
}
END_TEST

/* ---- where it is not ---- */

START_TEST(nothing_but_the_header_is_touched)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS $AT/path/$TOKEN?q=$TOKEN", "served");
    ck_assert_int_eq(told("stands outside of Authorization"), 1);
    shell("curl -sS -d \"x=$TOKEN\" $AT/", "served");
    ck_assert_int_eq(told("stands outside of Authorization"), 2);
    shell("curl -sS -H \"X-Other: Bearer $TOKEN\" -H \"Cookie: a=$TOKEN\" $AT/", "served");
    ck_assert_int_eq(told("stands outside of Authorization"), 3);
    shell(
        "curl -sS -H 'Transfer-Encoding: chunked' -H Content-Length: -H \"Authorization: $TOKEN\" "
        "-T - $AT/ </dev/null",
        NULL);
    ck_assert_int_eq(told("stands in another form"), 1);
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 0);
    ck_assert_int_ge(tls_has_seen(server, "barchan-secret-"), 5);
    shell("curl -sS " AUTH "$AT/", "served");
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 1);
}
END_TEST

START_TEST(other_hosts_see_a_placeholder)
{
    make_secret_sandbox(SECRET(.name = NULL));
    /* Not intercepted: the certificate is the server's own, which the sandbox does not trust. */
    shell("curl -sS " AUTH "$OTHER/ 2>&1", "certificate");
    shell("curl -sS -k " AUTH "$OTHER/", "served");
    ck_assert_int_eq(tls_has_seen(server, "Bearer barchan-secret-"), 1);
    shell("openssl s_client -connect ${OTHER#https://} -servername other.example </dev/null 2>&1",
          "issuer=CN = tests");
    shell("openssl s_client -connect ${AT#https://} -servername served.example </dev/null 2>&1",
          "issuer=CN = Barchan sandbox");
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 0);
}
END_TEST

START_TEST(without_tls_it_stays_a_word)
{
    make_secret_sandbox(SECRET(.name = NULL));
    /* The server hears no TLS, and closes; what was sent is told. */
    shell("curl -sS " AUTH "http://${AT#https://}/ 2>&1", NULL);
    shell("curl -sS -d \"$TOKEN\" http://${OTHER#https://}/ 2>&1", NULL);
    ck_assert_int_eq(told("sent without TLS, or to another host"), 2);
    ck_assert_int_eq(tls_handshakes(server), 0);
    shell("curl -sS " AUTH "$AT/", "served");
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
}
END_TEST

START_TEST(a_redirect_to_another_host_takes_the_placeholder_along)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS -k -L --location-trusted " AUTH "$AT/redirect", "served");
    ck_assert_int_eq(tls_has_seen(server, "GET /redirect"), 1);
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
    ck_assert_int_eq(tls_has_seen(server, "Bearer barchan-secret-"), 1);
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 1);
}
END_TEST

START_TEST(methods_and_paths)
{
    make_secret_sandbox(SECRET(.methods = ARGV("GET"), .paths = ARGV("/repos", "/user/")));
    shell("for path in /repos /repos/a?b /user/x; do curl -sS " AUTH "$AT$path; done", "served");
    ck_assert_int_eq(tls_has_seen(server, REAL), 3);
    shell("for path in / /reposevil /user /repos/../x /repos/%2e%2e/x /repos//x /REPOS; do "
          "curl -sS --path-as-is " AUTH "$AT$path; done",
          "served");
    ck_assert_int_eq(told("not for this path"), 7);
    shell("curl -sS -X DELETE " AUTH "$AT/repos", "served");
    ck_assert_int_eq(told("not for this method"), 1);
    ck_assert_int_eq(tls_has_seen(server, "MARKER"), 3);
    ck_assert_int_eq(tls_has_seen(server, "uthorization"), 3);
}
END_TEST

START_TEST(authorization_of_its_own_is_taken_out)
{
    make_secret_sandbox(SECRET(.header = "X-Api-Key", .format = "{}"));
    shell("curl -sS -H 'Authorization: Bearer mine' -H 'X-Api-Key: mine' $AT/", "served");
    shell("curl -sS -H \"X-Api-Key: mine\" -H \"X-Api-Key: $TOKEN\" $AT/", "served");
    shell("curl -sS -i -H \"X-Api-Key: $TOKEN\" -H \"x-api-key: $TOKEN\" $AT/", "403 Forbidden");
    shell("curl -sS -H \"X-Api-Key: $TOKEN\" -H \"x-api-key: $TOKEN\" $AT/",
          "not used: a value stands already in X-Api-Key");
    ck_assert_int_eq(tls_has_seen(server, "mine"), 0);
    ck_assert_int_eq(tls_has_seen(server, VALUE), 1);
    ck_assert_int_eq(told("authorization of the program's own"), 2);
}
END_TEST

START_TEST(authorization_of_its_own_is_refused)
{
    make_secret_sandbox(
        SECRET(.on_guest_authorization = BARCHAN_GUEST_AUTHORIZATION_REFUSE, .paths = ARGV("/a")));
    shell("curl -sS -i -H 'Authorization: Bearer mine' $AT/a", "403 Forbidden");
    shell("curl -sS -i " AUTH "$AT/b", "not used: it is not for this path");
    ck_assert_int_eq(tls_has_seen(server, "GET"), 0);
    ck_assert_int_eq(told("denied served.example"), 2);
    shell("curl -sS -i " AUTH "$AT/a", "200 OK");
    shell("curl -sS -i $AT/b", "200 OK");
    ck_assert_int_eq(tls_has_seen(server, "GET"), 2);
}
END_TEST

START_TEST(malformed_requests_go_nowhere)
{
    make_secret_sandbox(SECRET(.name = NULL));
    static const char *const requests[] = {
        "GET / HTTP/1.1\\r\\nHost: other.example\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nContent-Length: 1\\r\\nTransfer-Encoding: chunked\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nX: a\\r\\n folded\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nAuthorization : Bearer $TOKEN\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nX: a\\nAuthorization: Bearer $TOKEN\\r\\n",
        "GET https://$H/ HTTP/1.1\\r\\nHost: $H\\r\\n",
        "TRACE / HTTP/1.1\\r\\nHost: $H\\r\\nAuthorization: Bearer $TOKEN\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nConnection: upgrade\\r\\nUpgrade: websocket\\r\\n",
        "PRI * HTTP/2.0\\r\\n",
        "GET / HTTP/1.0\\r\\nAuthorization: Bearer $TOKEN\\r\\n",
        "GET / HTTP/1.0\\r\\nHost: $H\\r\\nAuthorization: Bearer $TOKEN\\r\\n",
        "GET /a#/../b HTTP/1.1\\r\\nHost: $H\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: $H\\r\\nTransfer_Encoding: chunked\\r\\n",
        "CONNECT $H HTTP/1.1\\r\\nHost: $H\\r\\n",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "H=${AT#https://}; { printf \"%s\\r\\n\"; sleep 0.5; } | openssl s_client -quiet "
                 "-connect $H -servername served.example 2>/dev/null",
                 requests[i]);
        shell(command, "403 Forbidden");
    }
    ck_assert_int_eq(tls_has_seen(server, "HTTP"), 0);
    shell("curl -sS --http2 " AUTH "$AT/", "served"); /* which it is offered, and goes without */
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
}
END_TEST

START_TEST(a_refusal_after_an_answer_can_be_read)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell(
        "cat >two.py <<'EOF'\n"
        "import socket, ssl, sys\n"
        "port = int(sys.argv[1].rsplit(':', 1)[1])\n"
        "s = ssl.create_default_context().wrap_socket(\n"
        "    socket.create_connection(('served.example', port)), "
        "server_hostname='served.example')\n"
        "def ask(path, more=''):\n"
        "    s.sendall(f'GET {path} HTTP/1.1\\r\\nHost: served.example:{port}\\r\\n{more}\\r\\n'\n"
        "              .encode())\n"
        "    got = b''\n"
        "    while b'served\\n' not in got and b'This sandbox' not in got:\n"
        "        piece = s.recv(4096)\n"
        "        if not piece: break\n"
        "        got += piece\n"
        "    print(got.decode())\n"
        "ask('/a'); ask('/b'); ask('/c', 'Upgrade: x\\r\\n')\n"
        "EOF\n"
        "python3 two.py $AT",
        "403 Forbidden");
    ck_assert_int_eq(tls_has_seen(server, "GET /a"), 1);
    ck_assert_int_eq(tls_has_seen(server, "GET /b"), 1);
    ck_assert_int_eq(tls_has_seen(server, "GET /c"), 0);
    ck_assert_int_eq(tls_handshakes(server), 1);
}
END_TEST

/* ---- servers ---- */

START_TEST(a_server_that_cannot_be_verified_gets_nothing)
{
    tls_server *stranger = tls_start();
    make_secret_sandbox(SECRET(.ca_file = tls_ca_file(stranger)));
    shell("curl -sS -i " AUTH "$AT/", "502 Bad Gateway");
    shell("curl -sS " AUTH "$AT/", "the server's certificate was refused: self-signed certificate");
    shell("curl -sS -k " AUTH "$AT/", "was refused"); /* no way around it from inside */
    ck_assert_int_eq(tls_has_seen(server, "HTTP"), 0);
    ck_assert_int_eq(tls_handshakes(server), 0);
    ck_assert_int_eq(told("failed served.example"), 3);
    tls_stop(stranger);
}
END_TEST

START_TEST(a_certificate_for_other_names_is_no_good)
{
    const char *const hosts[] = {at_port("third.example"), at_port("other.example"), NULL};
    make_secret_sandbox(SECRET(.hosts = hosts));
    shell("curl -sS " AUTH "https://third.example:${AT##*:}/",
          "the server's certificate was refused: hostname mismatch");
    ck_assert_int_eq(tls_has_seen(server, "HTTP"), 0);
    shell("curl -sS " AUTH "$OTHER/", "served"); /* one of its names */
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
}
END_TEST

START_TEST(without_a_file_this_machines_trust_decides)
{
    barchan_error err = {0};
    const char *const hosts[] = {at_port("served.example"), NULL};
    const barchan_secret secret =
        SECRET(.name = "TOKEN", .value = VALUE, .value_len = strlen(VALUE), .hosts = hosts);
    ck_assert_int_eq(try_secret_sandbox(&secret, 1, &err), 0);
    shell("curl -sS " AUTH "$AT/", "certificate was refused");
    ck_assert_int_eq(tls_has_seen(server, "HTTP"), 0);
}
END_TEST

START_TEST(what_a_server_shows_is_taken_out)
{
    make_secret_sandbox(SECRET(.name = NULL));
    static const char *const ways[] = {"length", "chunks", "end", "header"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char command[256];
        snprintf(command, sizeof command, "curl -sS -i " AUTH "$AT/echo/%s", ways[i]);
        shell(command, "Bearer **********");
    }
    ck_assert_int_eq(tls_has_seen(server, REAL), 4);
    /* "Bearer " in base64, and then the value's, at three alignments. */
    shell("curl -sS " AUTH "$AT/echo/base64 >b64; cat b64", "QmVhcmVyI");
    shell("for i in 1 2 3; do sed -n ${i}p b64 | tr '*' A | base64 -d; echo; done | grep -c 0f1e2d",
          "0\n");
    shell("grep -c '\\*\\*\\*' b64", "3\n");
    shell("curl -sS -i " AUTH "$AT/coded", "has a content coding");
    ck_assert_int_eq(tls_has_seen(server, "Accept-Encoding: identity\r\n"), 6);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {the_server_gets_the_value_and_the_sandbox_a_placeholder,
                                  programs_trust_what_they_see,
                                  basic_authorization,
                                  another_header_and_format,
                                  many_requests_of_one_connection,
                                  rotation_keeps_the_placeholder,
                                  seven_older_values_are_masked,
                                  nothing_but_the_header_is_touched,
                                  other_hosts_see_a_placeholder,
                                  without_tls_it_stays_a_word,
                                  a_redirect_to_another_host_takes_the_placeholder_along,
                                  methods_and_paths,
                                  authorization_of_its_own_is_taken_out,
                                  authorization_of_its_own_is_refused,
                                  malformed_requests_go_nowhere,
                                  a_refusal_after_an_answer_can_be_read,
                                  a_server_that_cannot_be_verified_gets_nothing,
                                  a_certificate_for_other_names_is_no_good,
                                  without_a_file_this_machines_trust_decides,
                                  what_a_server_shows_is_taken_out,
                                  NULL};
    Suite *suite = suite_create("secret");
    add_tests(suite, "secret", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
