/* Secrets: what a server gets, and what a sandbox never has. Real sandboxes, real programs, a real
 * server with TLS. Each thing that must not happen stands beside the same thing where it does. */
#include "secret_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTH "-H \"Authorization: Bearer $TOKEN\" "
#define REAL "Authorization: Bearer " VALUE "\r\n"

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
    /* The last value may still be shown by a server. */
    shell("curl -sS -d " VALUE " $AT/echo/length", "****");
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
    shell("curl -sS -H \"X-Api-Key: mine\" -H \"X-Api-Key: $TOKEN\" -H \"x-api-key: $TOKEN\" $AT/",
          "served");
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

/* ---- profiles ---- */

static void refused(barchan_secret secret, int code, const char *words)
{
    barchan_error err = {0};
    const char *const hosts[] = {at_port("served.example"), NULL};
    if (secret.name == NULL) secret.name = "TOKEN";
    if (secret.value == NULL) secret.value = VALUE;
    if (secret.value_len == 0) secret.value_len = strlen(secret.value);
    if (secret.hosts == NULL) secret.hosts = hosts;
    ck_assert_int_eq(try_secret_sandbox(&secret, 1, &err), code);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' is missing in: %s", words, err.message);
    ck_assert_ptr_null(strstr(err.message, "MARKER"));
}

START_TEST(profiles_that_are_refused)
{
    barchan_error err = {0};
    refused(SECRET(.value = "MARKER-short", .hosts = NULL), BARCHAN_EINVAL, "from 16 to 4096");
    refused(SECRET(.value = "MARKER\r\nX: injected-field"), BARCHAN_EINVAL, "no header can carry");
    refused(SECRET(.hosts = ARGV(NULL)), BARCHAN_EINVAL, "at least one host");
    refused(SECRET(.hosts = ARGV("*.served.example")), BARCHAN_EINVAL, "wildcard");
    refused(SECRET(.hosts = ARGV("127.0.0.1")), BARCHAN_EINVAL, "not an address");
    refused(SECRET(.hosts = ARGV("served.example:80")), BARCHAN_EINVAL, "port 80");
    refused(SECRET(.hosts = ARGV("unlisted.example")), BARCHAN_EINVAL, "unlisted.example:443");
    refused(SECRET(.header = "Host"), BARCHAN_EINVAL, "'Host'");
    refused(SECRET(.format = "Bearer"), BARCHAN_EINVAL, "{}");
    refused(SECRET(.name = "A-B"), BARCHAN_EINVAL, "variable");
    refused(SECRET(.ca_file = "/nowhere.pem"), BARCHAN_EIO, "/nowhere.pem");
    const barchan_secret one =
        SECRET(.name = "A", .value = VALUE, .value_len = 20, .hosts = ARGV("a.example"));
    ck_assert_int_eq(
        barchan_sandbox_create(&sbx, rt, PROFILE(.secrets = &one, .secret_count = 1), &err),
        BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "it is off"));
    const barchan_network_rules rules = {.struct_size = sizeof rules, .allow = ARGV("a.example")};
    ck_assert_int_eq(
        barchan_sandbox_create(&sbx, rt,
                               PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules,
                                       .secrets = &one, .secret_count = 1, .env = ARGV("A=1")),
                               &err),
        BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "a variable of this name"));
    const barchan_secret two[] = {one, one};
    ck_assert_int_eq(
        barchan_sandbox_create(&sbx, rt,
                               PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules,
                                       .secrets = two, .secret_count = 2),
                               &err),
        BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "two of this name"));
}
END_TEST

START_TEST(the_profiles_own_trust_stays)
{
    barchan_error err = {0};
    const barchan_secret one =
        SECRET(.name = "A", .value = VALUE, .value_len = 20, .hosts = ARGV("a.example"));
    const barchan_network_rules rules = {.struct_size = sizeof rules, .allow = ARGV("a.example")};
    ck_assert_int_eq(
        barchan_sandbox_create(&sbx, rt,
                               PROFILE(.network = BARCHAN_NETWORK_ALLOW, .network_rules = &rules,
                                       .secrets = &one, .secret_count = 1,
                                       .env = ARGV("SSL_CERT_FILE=/mine")),
                               &err),
        0);
    sh_says("echo $SSL_CERT_FILE $CURL_CA_BUNDLE", "/mine /run/barchan/ca-bundle.pem\n");
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "A", VALUE, 20, &err), 0);
    barchan_sandbox_destroy(sbx);
    ck_assert_int_eq(barchan_sandbox_create(&sbx, rt, NULL, &err), 0);
    sh_says("echo $SSL_CERT_FILE; ls /run/barchan 2>&1 | wc -l", "\n1\n");
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "A", VALUE, 20, &err), BARCHAN_ENOTFOUND);
}
END_TEST

START_TEST(it_is_not_forked)
{
    barchan_error err = {0};
    barchan_sandbox *fork = NULL;
    make_secret_sandbox(SECRET(.name = NULL));
    ck_assert_int_eq(barchan_sandbox_fork(sbx, &fork, 1, NULL, &err), BARCHAN_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "secrets"));
}
END_TEST

/* ---- the marker ---- */

/* Everything in the sandbox that its user can read, while programs with the secret run. The word to
 * look for comes in two pieces, so that the search does not find itself. */
static const char search[] =
    "import glob, os, subprocess, sys\n"
    "needles = [(sys.argv[1] + sys.argv[2]).encode()]\n"
    "needles += [needles[0].hex().encode(), needles[0].decode().encode('utf-16le')]\n"
    "def has(data, what, found):\n"
    "    for needle in needles:\n"
    "        if needle in data: found.append(what)\n"
    "def memory(pid, found):\n"
    "    try:\n"
    "        maps = open(f'/proc/{pid}/maps').read().splitlines()\n"
    "        mem = open(f'/proc/{pid}/mem', 'rb', 0)\n"
    "    except OSError: return 0\n"
    "    count = 0\n"
    "    for line in maps:\n"
    "        start, end = (int(x, 16) for x in line.split()[0].split('-'))\n"
    "        try:\n"
    "            mem.seek(start); has(mem.read(end - start), f'{pid} {line}', found); count += 1\n"
    "        except (OSError, ValueError, OverflowError): pass\n"
    "    return count\n"
    "found, regions, files = [], 0, 0\n"
    "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
    "    if int(pid) != os.getpid(): regions += memory(pid, found)\n"
    "    for name in ('environ', 'cmdline'):\n"
    "        try: data = open(f'/proc/{pid}/{name}', 'rb').read()\n"
    "        except OSError: continue\n"
    "        if not (int(pid) == os.getpid() and name == 'cmdline'): has(data, pid + name, found)\n"
    "for top in ('/workspace', '/home', '/run', '/tmp', '/var/tmp', '/etc', '/dev/shm'):\n"
    "    for folder, _, names in os.walk(top):\n"
    "        for name in names:\n"
    "            path = os.path.join(folder, name)\n"
    "            if not os.path.isfile(path): continue\n"
    "            try: has(open(path, 'rb').read(1 << 24), path, found); files += 1\n"
    "            except OSError: pass\n"
    "print(len(found), regions > 20, files > 3, found[:5])\n";

START_TEST(the_value_is_nowhere_in_the_sandbox)
{
    make_secret_sandbox(SECRET(.name = NULL));
    file_put_text("/workspace/search.py", search);
    /* A program that has used it, and stays. */
    shell("(python3 - $AT <<'EOF'\n"
          "import os, sys, time, urllib.request\n"
          "for i in range(10):\n"
          "    r = urllib.request.Request(sys.argv[1] + '/echo/chunks',\n"
          "        headers={'Authorization': 'Bearer ' + os.environ['TOKEN']})\n"
          "    open(f'answer{i}', 'wb').write(urllib.request.urlopen(r).read())\n"
          "open('done', 'w'); time.sleep(30)\n"
          "EOF\n"
          ") & for i in $(seq 100); do [ -e done ] && break; sleep 0.1; done; "
          "python3 search.py s3cr3t-MAR KER-0f1e2d3c4b5a69788796a5b4c3d2e1f0; kill %1",
          "0 True True []");
    ck_assert_int_eq(tls_has_seen(server, REAL), 10);
    ck_assert_ptr_null(strstr(all_events(), "MARKER"));
    /* The search finds what is there. */
    shell("echo s3cr3t-MARKER-0f1e2d3c4b5a69788796a5b4c3d2e1f0 >/tmp/planted; "
          "python3 search.py s3cr3t-MAR KER-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
          "'/tmp/planted'");
    shell("sh -c 'sleep 20; : s3cr3t-MARKER-0f1e2d3c4b5a69788796a5b4c3d2e1f0' & "
          "python3 search.py s3cr3t-MAR KER-0f1e2d3c4b5a69788796a5b4c3d2e1f0 | grep -c "
          "'\\[heap\\]\\|\\[stack\\]'; kill $!",
          "1\n");
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
                                  nothing_but_the_header_is_touched,
                                  other_hosts_see_a_placeholder,
                                  without_tls_it_stays_a_word,
                                  a_redirect_to_another_host_takes_the_placeholder_along,
                                  methods_and_paths,
                                  authorization_of_its_own_is_taken_out,
                                  authorization_of_its_own_is_refused,
                                  malformed_requests_go_nowhere,
                                  a_server_that_cannot_be_verified_gets_nothing,
                                  without_a_file_this_machines_trust_decides,
                                  what_a_server_shows_is_taken_out,
                                  profiles_that_are_refused,
                                  the_profiles_own_trust_stays,
                                  it_is_not_forked,
                                  the_value_is_nowhere_in_the_sandbox,
                                  NULL};
    Suite *suite = suite_create("secret");
    add_tests(suite, "secret", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
