/* Guests that want to be understood in two ways: by the library, which allows served.example, and
 * by the server, which would serve other.example. What is refused reaches the server with no byte;
 * each kind stands beside the same thing rightly said, which the server gives back. */
#include "network_support.h"

#include <stdio.h>
#include <string.h>

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
    each_was(&result, "403", "", 34);
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

int main(void)
{
    const TTest *const tests[] = {what_is_rightly_said_arrives,
                                  tls_for_another_host_is_refused,
                                  http_for_another_host_is_refused,
                                  it_is_refused_byte_by_byte,
                                  what_ends_within_its_first_words_is_refused,
                                  odd_questions_get_no_address,
                                  there_is_no_other_name_server,
                                  a_flood_of_names_moves_no_name_in_use,
                                  an_older_connection_gives_up_no_name,
                                  a_name_that_was_given_up_leads_nowhere,
                                  NULL};
    Suite *suite = suite_create("network_hostile");
    add_tests(suite, "network_hostile", setup_network, teardown_network, tests);
    return run_suite(suite);
}
