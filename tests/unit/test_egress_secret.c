/* What a secret is, and what becomes of a request's head. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "egress/base64.h"
#include "egress/redactor.h"
#include "egress/secret_head.h"
#include "egress/secret_memory.h"
#include "suite.h"

#define VALUE "0123456789abcdef-value"
#define GIVEN(...) given((barchan_secret){.struct_size = sizeof(barchan_secret), __VA_ARGS__})
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const a_host[] = {"a.example", NULL};
static bc_secret secrets[2];
static bc_secret_report report;

/* What a test does not say; `nothing` is said with the address of these. */
static const char *const no_list[] = {NULL};
static const char nothing[] = "";

static const barchan_secret *given(barchan_secret said)
{
    static barchan_secret secret;
    secret = said;
    if (said.name == NULL) secret.name = "TOKEN";
    if (said.name == nothing) secret.name = nothing;
    if (said.value == NULL) secret.value = VALUE;
    if (said.value_len == 0) secret.value_len = strlen(secret.value);
    if (said.value == nothing) secret.value = nothing;
    if (said.hosts == NULL) secret.hosts = a_host;
    if (said.hosts == no_list) secret.hosts = no_list;
    return &secret;
}

static void teardown(void)
{
    bc_secret_clear(&secrets[0]);
    bc_secret_clear(&secrets[1]);
}

static void has(size_t i, const barchan_secret *given)
{
    barchan_error err = {0};
    bc_secret_clear(&secrets[i]);
    ck_assert_msg(bc_secret_read(&secrets[i], given, &err) == 0, "%s", err.message);
}

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
    bc_patterns *patterns = bc_patterns_create(&source, 1);
    ck_assert_int_eq(count_in_memory(value, 200), 3);
    bc_patterns_unref(patterns);
    teardown();
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

/* ---- heads ---- */

/* The head of these lines, with "@" for the first secret's placeholder; borrowed. */
static const char *rewrite(size_t count, const char *lines)
{
    static char memory[40000];
    const bc_secret *list[] = {&secrets[0], &secrets[1]};
    char head[8192] = "";
    size_t len = 0;
    for (const char *c = lines; *c != '\0'; c++) {
        if (*c == '@') {
            memcpy(head + len, secrets[0].placeholder, BC_PLACEHOLDER_LENGTH);
            len += BC_PLACEHOLDER_LENGTH;
        } else {
            head[len++] = *c;
        }
    }
    bc_request_head read;
    ck_assert_int_eq(bc_request_head_read(head, len, &read), BC_SNIFF_DONE);
    bc_buf out = {.mem = memory, .cap = sizeof memory, .max = sizeof memory - 1};
    ck_assert_int_eq(bc_secret_head_rewrite(list, count, &read, head, &out, &report), 0);
    ck_assert_uint_eq(strlen(memory), out.len);
    ck_assert_int_eq(bc_request_head_read(memory, out.len, &read), BC_SNIFF_DONE);
    return memory;
}

static int notes(bc_secret_note note)
{
    int count = 0;
    for (size_t i = 0; i < report.count; i++)
        count += report.notes[i].note == note;
    return count;
}

#define LINE "GET /repos HTTP/1.1\r\nHost: a.example\r\n"
#define END "Accept-Encoding: identity\r\n\r\n"
#define REAL "Authorization: Bearer " VALUE "\r\n"

START_TEST(the_value_takes_the_placeholders_place)
{
    has(0, GIVEN(.name = "A"));
    ck_assert_str_eq(rewrite(1, LINE "authorization:Bearer @\t \r\nX: y\r\n\r\n"),
                     LINE REAL "X: y\r\n" END);
    ck_assert_int_eq(notes(BC_SECRET_USED), 1);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_str_eq(rewrite(1, "\r\n" LINE "X: y\r\n\r\n"), LINE "X: y\r\n" END);
    ck_assert_uint_eq(report.count, 0);
}
END_TEST

/* Which of two a server takes is its own choice, and the program's. */
START_TEST(a_field_has_one_value)
{
    char lines[512];
    has(0, GIVEN(.name = "A", .header = "X-Key", .format = "{}"));
    has(1, GIVEN(.name = "B", .header = "x_key", .format = "key={}"));
    rewrite(1, LINE "X-Key: @\r\nX-KEY: @\r\n\r\n");
    ck_assert(report.refused);
    ck_assert_int_eq(report.notes[report.cause].note, BC_SECRET_TWICE);
    rewrite(1, LINE "X-Key: mine\r\nX-Key: @\r\nX: y\r\nX-Key: @\r\n\r\n");
    ck_assert(report.refused);
    ck_assert_int_eq(report.notes[report.cause].note, BC_SECRET_TWICE);
    snprintf(lines, sizeof lines, LINE "X-Key: @\r\nx_key: key=%s\r\n\r\n", secrets[1].placeholder);
    rewrite(2, lines);
    ck_assert(report.refused);
    ck_assert_ptr_eq(report.notes[report.cause].secret, &secrets[1]);
    /* One beside others that are none, and two in two fields. */
    ck_assert_str_eq(rewrite(2, LINE "X-Key: mine\r\nX-Key: @\r\nX_Key: @\r\n\r\n"),
                     LINE "X-Key: " VALUE "\r\n" END);
    ck_assert(!report.refused);
    has(1, GIVEN(.name = "B"));
    snprintf(lines, sizeof lines, LINE "X-Key: @\r\nAuthorization: Bearer %s\r\n\r\n",
             secrets[1].placeholder);
    rewrite(2, lines);
    ck_assert(!report.refused);
    ck_assert_int_eq(notes(BC_SECRET_USED), 2);
}
END_TEST

START_TEST(elsewhere_it_stays_a_word)
{
    has(0, GIVEN(.name = "A"));
    const char *head = rewrite(1, "GET /@?@ HTTP/1.1\r\nHost: a.example\r\nCookie: @\r\n\r\n");
    ck_assert_ptr_null(strstr(head, VALUE));
    ck_assert_ptr_nonnull(strstr(head, "Cookie: barchan-secret-"));
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
    ck_assert_str_eq(rewrite(1, LINE "Authorization: token @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_MALFORMED), 1);
    ck_assert_str_eq(rewrite(1, LINE "Authorization: Bearer mine\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OWN), 1);
}
END_TEST

START_TEST(what_would_hide_an_answer_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ck_assert_str_eq(rewrite(1, LINE
                             "Accept-Encoding: gzip\r\naccept-encoding: br\r\nRange: bytes=0-1\r\n"
                             "If-Range: x\r\nTE: trailers\r\nConnection: Authorization\r\n"
                             "Proxy-Authorization: x\r\nMax-Forwards: 0\r\n\r\n"),
                     LINE END);
    ck_assert_str_eq(rewrite(1, LINE "Connection: close\r\n\r\n"),
                     LINE "Connection: close\r\n" END);
}
END_TEST

/* No line of these is left, and each is one for this host without it. */
static void are_taken_out(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        snprintf(lines, sizeof lines, LINE "%s: mine\r\nX: y\r\n\r\n", names[i]);
        ck_assert_str_eq(rewrite(1, lines), LINE "X: y\r\n" END);
    }
}
#define ARE_TAKEN_OUT(...)                            \
    are_taken_out((const char *const[]){__VA_ARGS__}, \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

START_TEST(names_have_many_spellings)
{
    has(0, GIVEN(.name = "A", .header = "X-Api-Key", .format = "{}"));
    ARE_TAKEN_OUT("X-Api-Key", "X_Api_Key", "X.Api.Key", "x_api-KEY", "X~Api'Key", "AUTHORIZATION",
                  "Accept_Encoding", "Keep.Alive", "proxy_authorization", "If_Range");
    /* The placeholder is replaced under the name itself only. */
    ck_assert_str_eq(rewrite(1, LINE "X_Api_Key: @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
    ck_assert_str_eq(rewrite(1, LINE "XApiKey: a\r\nX-Api-Key2: b\r\nx-api-key: @\r\n\r\n"),
                     LINE "XApiKey: a\r\nX-Api-Key2: b\r\nX-Api-Key: " VALUE "\r\n" END);
}
END_TEST

START_TEST(what_asks_for_a_part_or_another_form_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ARE_TAKEN_OUT("Range", "If-Range", "Request-Range", "X-MS-Range", "x_ms_range", "A-IM", "a_im",
                  "Accept-Charset", "Accept.Encoding", "Content_Range");
    /* That of an upload asks for nothing: without it a server would write the part as a whole. */
    ck_assert_str_eq(rewrite(1, LINE "Content-Range: bytes 0-1/9\r\nOrange: x\r\n\r\n"),
                     LINE "Content-Range: bytes 0-1/9\r\nOrange: x\r\n" END);
}
END_TEST

START_TEST(what_says_that_a_request_is_another_is_taken_out)
{
    has(0, GIVEN(.name = "A"));
    ARE_TAKEN_OUT("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "x_http_method",
                  "X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Original-Host",
                  "X-Rewrite-URL", "X_Rewrite.Url", "X-Forwarded-Host", "X-Forwarded-Prefix",
                  "X-Forwarded-Path", "X-Forwarded-Uri", "X-Forwarded-For", "X-Forwarded-Method",
                  "X_FORWARDED_PROTO", "X-Forwarded", "Forwarded", "X-Host", "X-HTTP-Host-Override",
                  "X-HTTP-Path-Override", "X-Override-URL", "X-Proxy-URL", "X-Replaced-Path",
                  "X-Envoy-Original-Path", "Base-Url", "Http-Url", "Request-Uri");
    ck_assert_str_eq(rewrite(1, LINE "X-Hosts: x\r\nMethod: y\r\nX-Original: z\r\n\r\n"),
                     LINE "X-Hosts: x\r\nMethod: y\r\nX-Original: z\r\n" END);
    /* Also the secret's own field, but for the value. */
    has(0, GIVEN(.name = "A", .header = "X-Forwarded-Access-Token", .format = "{}"));
    ck_assert_str_eq(rewrite(1, LINE "X-Forwarded-Access-Token: @\r\n\r\n"),
                     LINE "X-Forwarded-Access-Token: " VALUE "\r\n" END);
}
END_TEST

START_TEST(several_secrets_of_a_host)
{
    has(0, GIVEN(.name = "A", .methods = LIST("POST")));
    has(1, GIVEN(.name = "B", .header = "X-Key", .format = "{}", .value = "fedcba9876543210",
                 .value_len = 16));
    char lines[512];
    snprintf(lines, sizeof lines, LINE "X-Key: %s\r\nAuthorization: Bearer @\r\n\r\n",
             secrets[1].placeholder);
    ck_assert_str_eq(rewrite(2, lines), LINE "X-Key: fedcba9876543210\r\n" END);
    ck_assert_int_eq(notes(BC_SECRET_NO_METHOD), 1);
    ck_assert_int_eq(notes(BC_SECRET_USED), 1);
    /* One in the other's place is none. */
    ck_assert_str_eq(rewrite(2, LINE "X-Key: @\r\n\r\n"), LINE END);
    ck_assert_int_eq(notes(BC_SECRET_OUTSIDE), 1);
}
END_TEST

START_TEST(the_strict_refuse)
{
    has(0, GIVEN(.name = "A", .paths = LIST("/repos"),
                 .on_guest_authorization = BARCHAN_GUEST_AUTHORIZATION_REFUSE));
    rewrite(1, LINE "Authorization: mine\r\n\r\n");
    ck_assert(report.refused);
    rewrite(1, "GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer @\r\n\r\n");
    ck_assert(report.refused);
    rewrite(1, LINE "Authorization: Bearer @\r\nCookie: @\r\n\r\n");
    ck_assert(!report.refused);
}
END_TEST

START_TEST(notes_hold_no_value)
{
    has(0, GIVEN(.name = "A"));
    for (int note = 0; note < BC_SECRET_NOTE_COUNT; note++) {
        char text[256];
        bc_secret_note_text(&secrets[0], (bc_secret_note)note, text, sizeof text);
        ck_assert_uint_gt(strlen(text), 10);
        ck_assert_ptr_null(strstr(text, VALUE));
        bc_secret_note_text(NULL, (bc_secret_note)note, text, sizeof text);
    }
}
END_TEST

SUITE_MAIN("egress secret", NULL, teardown, what_is_read, what_is_refused,
           paths_are_compared_by_their_parts, a_placeholder_must_stand_in_its_form,
           nothing_is_left_of_a_value, values_are_in_no_core_dump,
           the_value_takes_the_placeholders_place, a_field_has_one_value, elsewhere_it_stays_a_word,
           what_would_hide_an_answer_is_taken_out, names_have_many_spellings,
           what_asks_for_a_part_or_another_form_is_taken_out,
           what_says_that_a_request_is_another_is_taken_out, several_secrets_of_a_host,
           the_strict_refuse, notes_hold_no_value)
