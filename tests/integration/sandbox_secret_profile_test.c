/* Secrets: the profiles that are refused, what a sandbox has of them, and that their values are
 * nowhere in it. */
#include "secret_support.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sandbox/internal.h"

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
    refused(SECRET(.ca_file = "/nowhere.pem"), BARCHAN_ENOTFOUND, "/nowhere.pem");
    refused(SECRET(.ca_file = "/etc/passwd"), BARCHAN_EINVAL, "no certificate in PEM form");
    refused(SECRET(.name = "A-B"), BARCHAN_EINVAL, "name 'A-B'");
    refused(SECRET(.name = "PATH"), BARCHAN_EINVAL, "secret PATH: programs take this variable");
    refused(SECRET(.name = "LD_PRELOAD"), BARCHAN_EINVAL, "secret LD_PRELOAD: programs take");
    refused(SECRET(.name = "SSL_CERT_FILE"), BARCHAN_EINVAL, "secret SSL_CERT_FILE: programs");
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
    "word = sys.argv[1] + sys.argv[2]\n"
    "first = bytes.fromhex(word[4:]) if word.startswith('hex:') else word.encode()\n"
    "needles = [first, first.hex().encode(), first.decode('latin-1').encode('utf-16le')]\n"
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

/* ---- the authority's key ---- */

/* The secret number of the key, big-endian; `key` is what it belongs to. */
static void read_key(unsigned char number[32], EVP_PKEY **key)
{
    const bc_ca *ca = bc_egress_secrets(sbx->egress)->ca;
    memcpy(key, ca, sizeof(EVP_PKEY *)); /* its first member, as is checked: */
    BIO *text = BIO_new_mem_buf(bc_ca_pem(ca), -1);
    X509 *cert = PEM_read_bio_X509(text, NULL, NULL, NULL);
    ck_assert_int_eq(X509_check_private_key(cert, *key), 1);
    BIGNUM *secret = NULL;
    ck_assert_int_eq(EVP_PKEY_get_bn_param(*key, OSSL_PKEY_PARAM_PRIV_KEY, &secret), 1);
    ck_assert_int_eq(BN_bn2binpad(secret, number, 32), 32);
    BN_clear_free(secret);
    X509_free(cert);
    BIO_free(text);
}

/* In the memory of a process, as root of the machine sees it; -1: it cannot be read. */
static int is_in_memory(int pid, const unsigned char *bytes, size_t len)
{
    enum { MOST = 64 << 20 };
    char path[64], line[512];
    int found = -1;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    char *copy = malloc(MOST);
    while (mem >= 0 && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2 || end - start > MOST) continue;
        ssize_t n = pread(mem, copy, end - start, (off_t)start);
        if (n <= 0) continue;
        if (found < 0) found = 0;
        if (memmem(copy, (size_t)n, bytes, len) != NULL) found = 1;
    }
    free(copy);
    if (maps != NULL) fclose(maps);
    if (mem >= 0) close(mem);
    return found;
}

START_TEST(the_authoritys_key_is_nowhere_in_the_sandbox)
{
    unsigned char number[32];
    char hex[65], command[512];
    EVP_PKEY *key;
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS -H \"Authorization: Bearer $TOKEN\" $AT/", NULL);
    read_key(number, &key);
    for (size_t i = 0; i < sizeof number; i++) {
        snprintf(hex + 2 * i, 3, "%02x", number[i]);
    }
    file_put_text("/workspace/search.py", search);
    snprintf(command, sizeof command, "sleep 20 & python3 search.py hex:%.20s %s; kill $!", hex,
             hex + 20);
    shell(command, "0 True True []");
    shell("grep -rlE 'BEGIN [A-Z ]*PRIVATE KEY' /workspace /home /run /tmp /etc; env | grep -c "
          "'PRIVATE KEY'",
          "0\n");
    /* The search finds it where it is. */
    int launcher = first_child(), here = is_in_memory((int)getpid(), number, sizeof number);
    if (is_root()) ck_assert_int_eq(here, 1);
    ck_assert_int_ne(is_in_memory(launcher, number, sizeof number), 1);
    int inside = is_in_memory(child_of(launcher), number, sizeof number);
    ck_assert_int_ne(inside, 1);
    if (is_root()) ck_assert_int_eq(inside, 0); /* it was read */
    snprintf(command, sizeof command,
             "python3 -c \"open('/tmp/planted', 'wb').write(bytes.fromhex('%s'))\"; "
             "python3 search.py hex:%.20s %s",
             hex, hex, hex + 20);
    shell(command, "'/tmp/planted'");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {profiles_that_are_refused,
                                  the_profiles_own_trust_stays,
                                  it_is_not_forked,
                                  the_value_is_nowhere_in_the_sandbox,
                                  the_authoritys_key_is_nowhere_in_the_sandbox,
                                  NULL};
    Suite *suite = suite_create("secret profile");
    add_tests(suite, "secret profile", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
