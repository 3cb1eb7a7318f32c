/* Secrets: the profiles that are refused, what a sandbox has of them, and that their values are
 * nowhere in it. */
#include "secret_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL "Authorization: Bearer " VALUE "\r\n"

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
    const TTest *const tests[] = {profiles_that_are_refused, the_profiles_own_trust_stays,
                                  it_is_not_forked, the_value_is_nowhere_in_the_sandbox, NULL};
    Suite *suite = suite_create("secret profile");
    add_tests(suite, "secret profile", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
