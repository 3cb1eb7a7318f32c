/* Answers that go on, break off or end where somebody else chooses: the value is in none. */
#include "secret_support.h"

#include <stdio.h>
#include <string.h>

START_TEST(an_answer_that_breaks_off_in_a_value)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw("send(head('GET /broken', auth())); print(receive(2))\n");
    shell("python3 raw.py $AT; true", "200 OK");
    shell("python3 raw.py $AT | grep -c s3cr3t", "0\n");
    shell("curl -s --http1.0 -o body " AUTH "$AT/echo/end; cat body", "HTTP/1.0 on a host");
}
END_TEST

/* It may have been cut off for all that can be seen, and no program takes what it got for all there
 * was. Its twin says goodbye. */
START_TEST(an_answer_that_ends_without_a_word)
{
    static const char read[] =
        "python3 -c 'import sys, urllib.request as u; "
        "print(u.urlopen(sys.argv[1]).read().decode(), end=\"\")' $AT/endless";
    static const char all[] = "{\"items\": [1, 2],\n \"next\": null}";
    char silent[256];
    snprintf(silent, sizeof silent, "%s/silent 2>&1 | tail -n 1", read);
    make_secret_sandbox(SECRET(.name = NULL));
    shell("curl -sS $AT/endless/silent > out; echo $?; cat out", "18\n{\"items\": [1, 2],\n");
    ck_assert_int_eq(told("close_notify"), 1);
    shell(silent, "IncompleteRead");
    ck_assert_int_eq(told("close_notify"), 2);
    shell("curl -sS $AT/endless", all);
    shell(read, all);
    ck_assert_int_eq(told("close_notify"), 2);
}
END_TEST

/* A server ends its answer where it is told that its client says no more, or where the request's
 * body does: how it is asked, and how it is ended. */
static void does_not_choose_the_end(const char *ask, const char *end)
{
    char program[2048];
    make_secret_sandbox(SECRET(.name = NULL));
    snprintf(program, sizeof program,
             BY_HAND "c.write(%s.encode())\n"
                     "got = until(c.read, 4096).decode()\n"
                     "%s; s.settimeout(9)\n"
                     "try:\n"
                     "    while piece := until(c.read, 4096): got += piece.decode()\n"
                     "except OSError as e: got += '<cut off>'\n"
                     "print(got)\n",
             ask, end);
    put_raw(program);
    shell("python3 raw.py $AT > out 2>&1; cat out", "200 OK");
    shell("grep -c s3cr3t out; grep -c '^0' out; tail -n 1 out", "0\n0\n<cut off>\n");
    ck_assert_int_eq(told("failed served.example"), 1);
}

START_TEST(a_last_word_does_not_choose_where_an_answer_ends)
{
    does_not_choose_the_end("head('GET /hurried', auth())", "say_no_more()");
}
END_TEST

START_TEST(a_body_does_not_choose_where_an_answer_ends)
{
    does_not_choose_the_end("head('POST /hurried', auth() + 'Transfer-Encoding: chunked\\r\\n')",
                            "c.write(b'0\\r\\n\\r\\n'); s.sendall(o.read())");
}
END_TEST

/* Most servers that answer so early refuse, and end their answer without the body. */
START_TEST(an_early_answer_is_read_to_its_end)
{
    make_secret_sandbox(SECRET(.name = NULL));
    shell("head -c 3000000 /dev/zero >big; curl -sS --limit-rate 2M -H Expect: " AUTH
          "--data-binary @big -w ' %{http_code}' $AT/early",
          "{\"error\":\"no key\"} 401");
    shell("curl -sS --limit-rate 2M -H Expect: -H Transfer-Encoding:\\ chunked " AUTH
          "--data-binary @big -w ' %{http_code}' $AT/early",
          "{\"error\":\"no key\"} 401");
    ck_assert_int_eq(told("failed served.example"), 0);
}
END_TEST

/* A program reads when it likes, long after the server has said all. */
START_TEST(an_answer_waits_for_who_reads_later)
{
    make_secret_sandbox(SECRET(.name = NULL));
    put_raw(
        "import http.client, sys, threading, time\n"
        "def ask(method, path):\n"
        "    c = http.client.HTTPSConnection('served.example', PORT)\n"
        "    c.request(method, path, 'x' if method == 'POST' else None, {'Connection': 'close'})\n"
        "    answer = c.getresponse()\n"
        "    some = answer.read(1000)\n"
        "    time.sleep(5)\n"
        "    print(method, path, len(some) + len(answer.read()))\n"
        "ways = ('GET', '/big'), ('POST', '/big'), ('GET', '/big/endless')\n"
        "threads = [threading.Thread(target=ask, args=way) for way in ways]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n");
    shell("python3 raw.py $AT 2>&1 | sort",
          "GET /big 3000000\nGET /big/endless 3000000\nPOST /big 3000000\n");
    ck_assert_int_eq(told("failed served.example"), 0);
}
END_TEST

static void on_log_ended(barchan_exec *exec, barchan_exec_result *result, void *ud)
{
    (void)exec;
    barchan_exec_result_clear(result);
    *(int *)ud = 1;
}

static int log_has_begun(void *ud)
{
    return *(int *)ud == 1 || tls_has_seen(server, "GET /log") > 0;
}

/* An answer that has begun shows no value that came after it, nor the one before. */
START_TEST(rotation_in_the_midst_of_an_answer)
{
    static const char second[] = "second-MARKER-value-1234567890";
    make_secret_sandbox(SECRET(.name = NULL));
    int ended = 0;
    char command[256];
    snprintf(command, sizeof command, "curl -sSN " AUTH "https://served.example:%d/log >log",
             tls_port(server));
    ck_assert_int_eq(barchan_sandbox_exec_start(NULL, sbx, OPTIONS(.command = command),
                                                on_log_ended, &ended, NULL),
                     0);
    ck_assert(wait_until(log_has_begun, &ended, 20000));
    shell("until grep -q 'so far' log; do sleep 0.01; done", NULL);
    ck_assert_msg(ended == 0, "%s", all_events());
    ck_assert_int_eq(barchan_sandbox_set_secret(sbx, "TOKEN", second, strlen(second), NULL), 0);
    shell("curl -sS " AUTH "$AT/now", "served");
    shell("until grep -q 'GET /now' log; do sleep 0.01; done; grep -c 'Bearer \\*\\*\\*\\*' log",
          "2\n");
    shell("cat log", "so far");
    ck_assert_int_eq(tls_has_seen(server, second), 1);
    ck_assert_int_eq(tls_has_seen(server, REAL), 1);
}
END_TEST

/* What is left to learn: as many stars as the value has characters. barchan/secret.h says so. */
START_TEST(its_length_can_be_learnt)
{
    char expected[16];
    make_secret_sandbox(SECRET(.name = NULL));
    snprintf(expected, sizeof expected, "%zu\n", strlen(VALUE));
    shell("curl -sS -H \"Authorization: Bearer $TOKEN\" $AT/echo/length | grep -o 'Bearer .*' | tr "
          "-cd '*' | wc -c",
          expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_answer_that_breaks_off_in_a_value,
                                  an_answer_that_ends_without_a_word,
                                  a_last_word_does_not_choose_where_an_answer_ends,
                                  a_body_does_not_choose_where_an_answer_ends,
                                  an_early_answer_is_read_to_its_end,
                                  an_answer_waits_for_who_reads_later,
                                  rotation_in_the_midst_of_an_answer,
                                  its_length_can_be_learnt,
                                  NULL};
    Suite *suite = suite_create("secret answers");
    add_tests(suite, "secret answers", setup_secrets, teardown_secrets, tests);
    return run_suite(suite);
}
