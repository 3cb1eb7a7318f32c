/* What a secret is. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "egress/base64.h"
#include "egress/redactor.h"
#include "egress/secret_memory.h"
#include "secret_given.h"
#include "suite.h"

static void is_refused(const barchan_secret *given, const char *words)
{
    barchan_error err = {0};
    bc_secret secret = {.name = NULL};
    ck_assert_int_lt(bc_secret_read(&secret, given, &err), 0);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' is missing in: %s", words, err.message);
    ck_assert_ptr_null(strstr(err.message, "value-"));
    bc_secret_clear(&secret);
}

/* ---- reading ---- */

START_TEST(what_is_read)
{
    has(0, GIVEN(.hosts = LIST("A.example.", "b.example:8443")));
    ck_assert_str_eq(secrets[0].header, "Authorization");
    ck_assert_str_eq(secrets[0].before, "Bearer ");
    ck_assert_str_eq(secrets[0].after, "");
    ck_assert(bc_secret_is_bound(&secrets[0], "a.example", 443));
    ck_assert(bc_secret_is_bound(&secrets[0], "b.example", 8443));
    ck_assert(!bc_secret_is_bound(&secrets[0], "b.example", 443));
    ck_assert(!bc_secret_is_bound(&secrets[0], "x.a.example", 443));
    ck_assert_uint_eq(strlen(secrets[0].placeholder), BC_PLACEHOLDER_LENGTH);
    has(1, GIVEN(.format = "key=\"{}\""));
    ck_assert_str_eq(secrets[1].before, "key=\"");
    ck_assert_str_eq(secrets[1].after, "\"");
    ck_assert_str_ne(secrets[0].placeholder, secrets[1].placeholder);
    has(1, GIVEN(.user = "u"));
    ck_assert_str_eq(secrets[1].before, "Basic ");
}
END_TEST

START_TEST(what_is_refused)
{
    is_refused(GIVEN(.name = nothing), "variable");
    is_refused(GIVEN(.name = "1A"), "variable");
    is_refused(GIVEN(.name = "A=B"), "variable");
    is_refused(GIVEN(.value = nothing), "from 16 to 4096");
    is_refused(GIVEN(.value_len = 15), "15 bytes");
    is_refused(GIVEN(.value = "value-with\na line's end"), "no header");
    is_refused(GIVEN(.value = "value-with a NUL\0", .value_len = 17), "no header");
    is_refused(GIVEN(.value = " value-with-a-space"), "no header");
    is_refused(GIVEN(.value = "value-with-\xc3\xa4-in-it"), "no header");
    is_refused(GIVEN(.hosts = no_list), "at least one");
    is_refused(GIVEN(.hosts = LIST("*.example")), "wildcard");
    is_refused(GIVEN(.hosts = LIST("a.example", "*")), "wildcard");
    is_refused(GIVEN(.hosts = LIST("https://a.example")), "write");
    is_refused(GIVEN(.hosts = LIST("a.example:0")), "write");
    is_refused(GIVEN(.hosts = LIST("a.example:65536")), "write");
    is_refused(GIVEN(.hosts = LIST("a.example:443x")), "write");
    is_refused(GIVEN(.hosts = LIST("a.example/path")), "write");
    is_refused(GIVEN(.hosts = LIST("10.0.0.1")), "address");
    is_refused(GIVEN(.hosts = LIST("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
                                   "13", "14", "15", "16", "17")),
               "at most 16");
    is_refused(GIVEN(.header = "content-Length"), "cannot carry");
    is_refused(GIVEN(.header = "X Y"), "cannot carry");
    is_refused(GIVEN(.header = "Accept_Encoding"), "cannot carry");
    is_refused(GIVEN(.header = "X-MS-Range"), "cannot carry");
    is_refused(GIVEN(.header = ""), "cannot carry");
    is_refused(GIVEN(.format = "{} {}"), "format");
    is_refused(GIVEN(.format = "Bearer {}\r\nX: y"), "format");
    is_refused(GIVEN(.user = "a:b"), "user");
    is_refused(GIVEN(.methods = LIST("GET", "P T")), "methods");
    is_refused(GIVEN(.methods = LIST(NULL)), "empty");
    is_refused(GIVEN(.paths = LIST("repos")), "paths");
    is_refused(GIVEN(.paths = LIST("/a?b")), "paths");
    is_refused(GIVEN(.on_guest_authorization = 2), "on_guest_authorization");
}
END_TEST

START_TEST(paths_are_compared_by_their_parts)
{
    has(0, GIVEN(.paths = LIST("/repos", "/user/", "/x/y")));
    static const char *const good[] = {"/repos",   "/repos/",      "/repos/a/b", "/repos?x=/../",
                                       "/user/a",  "/x/y/.hidden", "/x/y/a%21b", "/x/y/a..b",
                                       "/x/y/a..", "/x/y/%41"};
    static const char *const bad[] = {
        "", "/", "/repo", "/reposevil", "/Repos", "/user", "/x", "/repos/../x", "/repos/..",
        "/repos/.", "/repos//x", "//repos", "/repos/%2e%2e/x", "/repos/%2E./x", "/repos%2fx/..",
        "/repos/%", "/repos/a;b", "/repos/a\\b", "/repos/%5c..", "/repos/%252e", "/repos/%2", "*",
        "a.example/repos",
        /* what some servers end, trim, decode or map into dots and slashes */
        "/repos#/../../admin", "/repos/#", "/repos/..%00/x", "/repos/..%20/x", "/repos/..%09/x",
        "/repos/.%20/x", "/repos/a%20b", "/repos/a%00", "/repos/a%0d%0a", "/repos/a%7f",
        "/repos/%c0%ae%c0%ae/x", "/repos/%u002e%u002e/x", "/repos/%ef%bc%8e%ef%bc%8e/x",
        "/repos/%C3%a4", "/repos/%zz", "/repos/%2g", "/repos/%+1", "/repos/..;/x", "/repos/..a",
        "/repos/...", "/repos/..\\x", "/repos/.;/x", "/repos/%2E", "/repos/%2F", "/repos/%3B",
        "/repos/%"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(bc_secret_has_path(&secrets[0], good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!bc_secret_has_path(&secrets[0], bad[i], strlen(bad[i])), "%s", bad[i]);
}
END_TEST

/* "@" stands for the placeholder. */
static bool asks(const char *form)
{
    char text[256];
    const char *at = strchr(form, '@');
    int before = at == NULL ? (int)strlen(form) : (int)(at - form);
    snprintf(text, sizeof text, "%.*s%s%s", before, form, at == NULL ? "" : secrets[0].placeholder,
             at == NULL ? "" : at + 1);
    return bc_secret_is_asked_for(&secrets[0], text, strlen(text));
}

START_TEST(a_placeholder_must_stand_in_its_form)
{
    has(0, GIVEN(.name = "A"));
    ck_assert(asks("Bearer @"));
    ck_assert(asks("bEARER @"));
    static const char *const bad[] = {
        "@",       "Bearer  @",          "Bearer @ ",    "Bearer @x", "Bearer x@",
        "token @", "Bearer @, Bearer x", "Bearer \"@\"", "Bearer"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!asks(bad[i]), "%s", bad[i]);
    char plain[256], coded[512] = "Basic ";
    has(0, GIVEN(.user = "robot"));
    snprintf(plain, sizeof plain, "anyone:%s", secrets[0].placeholder);
    size_t len = 6 + bc_base64_encode(plain, strlen(plain), coded + 6);
    ck_assert(bc_secret_is_asked_for(&secrets[0], coded, len));
    ck_assert(!bc_secret_is_asked_for(&secrets[0], coded, len - 4));
    snprintf(plain, sizeof plain, "%s:x", secrets[0].placeholder);
    len = 6 + bc_base64_encode(plain, strlen(plain), coded + 6);
    ck_assert(!bc_secret_is_asked_for(&secrets[0], coded, len));
}
END_TEST

/* ---- memory ---- */

/* How often the bytes stand in this process's writable memory, but for the copies made here. */
static int count_in_memory(const char *bytes, size_t len)
{
    static char maps[1u << 16], copy[1u << 16];
    int count = 0, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t maps_len = 0;
    for (ssize_t n; (n = read(fd, maps + maps_len, sizeof maps - 1 - maps_len)) > 0;)
        maps_len += (size_t)n;
    close(fd);
    maps[maps_len] = '\0';
    fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    for (char *line = maps; *line != '\0'; line = strchr(line, '\n') + 1) {
        unsigned long from, to;
        char rights[8];
        ck_assert_int_eq(sscanf(line, "%lx-%lx %7s", &from, &to, rights), 3);
        if (rights[1] != 'w' || to - from > 64u << 20) continue; /* or a sanitizer's own */
        for (unsigned long at = from; at < to; at += sizeof copy / 2) {
            bc_secret_wipe(copy, sizeof copy);
            size_t want = to - at < sizeof copy ? to - at : sizeof copy;
            ssize_t n = pread(fd, copy, want, (off_t)at);
            char *found = n <= 0 ? NULL : memmem(copy, (size_t)n, bytes, len);
            for (; found != NULL; found = memmem(found, (size_t)(copy + n - found), bytes, len)) {
                unsigned long where = at + (unsigned long)(found++ - copy);
                bool again = where >= at + sizeof copy / 2; /* comes in the next piece, too */
                bool ours =
                    where >= (unsigned long)copy && where < (unsigned long)(copy + sizeof copy);
                count += !again && !ours;
            }
        }
    }
    close(fd);
    bc_secret_wipe(copy, sizeof copy);
    return count;
}

START_TEST(nothing_is_left_of_a_value)
{
    /* One copy, made here: no constant of this program holds it, and no register all of it. */
    static char value[201];
    for (size_t i = 0; i < 200; i++)
        value[i] = (char)('A' + (i * i + 3 * i + i / 7) % 26);
    ck_assert_int_eq(count_in_memory(value, 200), 1);
    has(0, GIVEN(.name = "A", .value = value, .user = "robot"));
    const bc_pattern_source source = {secrets[0].value.data, 200, 0, 1};
    bc_patterns *patterns = bc_patterns_create(&source, 1, true);
    ck_assert_int_eq(count_in_memory(value, 200), 3);
    bc_patterns_unref(patterns);
    forget_secrets();
    ck_assert_int_eq(count_in_memory(value, 200), 1);
}
END_TEST

START_TEST(values_are_in_no_core_dump)
{
    char line[512];
    char *memory = bc_secret_alloc(100);
    int in = 0, found = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    ck_assert(memory != NULL && maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            in = from <= (unsigned long)memory && (unsigned long)memory < to;
        if (!in || strncmp(line, "VmFlags:", 8) != 0) continue;
        found++;
        ck_assert_ptr_nonnull(strstr(line, " dd")); /* not dumped */
        ck_assert_ptr_nonnull(strstr(line, " wf")); /* wiped in a child */
    }
    ck_assert_int_eq(found, 1);
    fclose(maps);
    bc_secret_free(memory, 100);
}
END_TEST

SUITE_MAIN("egress secret", NULL, forget_secrets, what_is_read, what_is_refused,
           paths_are_compared_by_their_parts, a_placeholder_must_stand_in_its_form,
           nothing_is_left_of_a_value, values_are_in_no_core_dump)
