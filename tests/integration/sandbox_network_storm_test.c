/* Guests that take their network as far as it goes. The library's memory and descriptors stay
 * bounded, its other sandboxes are served, and afterwards everything is as before. */
#include "sandbox_path.h"
#include "network_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Sanitizers keep what is freed, and shadow what is used. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_FACTOR 8
#else
#define MEMORY_FACTOR 1
#endif

static barchan_sandbox *other;

static void setup_storm(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 16384 ? limit.rlim_max : 16384;
    setrlimit(RLIMIT_NOFILE, &limit);
    other = NULL;
    setup_network();
}

static void teardown_storm(void)
{
    barchan_sandbox_destroy(other);
    teardown_network();
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    ck_assert_ptr_nonnull(file);
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void make(net_kind kind, size_t max_connections)
{
    serve_kind(kind);
    make_sandbox(BARCHAN_NETWORK_ALLOW,
                 (barchan_network_rules){.allow = entries("served.example:@", "127.0.0.1:@", NULL),
                                         .max_connections = max_connections});
}

static size_t open_now(barchan_sandbox *sandbox)
{
    barchan_network_usage usage;
    ck_assert_int_eq(barchan_sandbox_network(sandbox, &usage, NULL), 0);
    size_t open = usage.open;
    barchan_network_usage_clear(&usage);
    return open;
}

static int none_open(void *ud)
{
    return open_now(ud) == 0;
}

/* ---- a storm that runs while the test looks ---- */

static struct ended ended;
static struct said {
    char text[64];
    size_t len;
} said;

static void hear(barchan_exec *exec, barchan_stream stream, const char *data, size_t len, void *ud)
{
    (void)exec;
    (void)ud;
    if (stream != BARCHAN_STREAM_OUT || said.len + len >= sizeof said.text) return;
    memcpy(said.text + said.len, data, len);
    said.len += len;
}

static int has_said_up(void *ud)
{
    (void)ud;
    return strstr(said.text, "up\n") != NULL || ended.count > 0;
}

static barchan_exec *start_storm(const char *name, int count)
{
    barchan_exec *exec;
    char words[3][32];
    put_script("network_storm.py");
    snprintf(words[0], 32, "%d", net_port(server));
    snprintf(words[1], 32, "%s", name);
    snprintf(words[2], 32, "%d", count);
    ended = (struct ended){0};
    said = (struct said){0};
    ck_assert_int_eq(
        barchan_sandbox_exec_start(
            &exec, sbx,
            OPTIONS(.argv = ARGV("python3", "network_storm.py", words[0], words[1], words[2]),
                    .streaming = 1, .input_streaming = 1, .on_output = hear, .timeout_ms = 120000),
            note_end, &ended, NULL),
        0);
    return exec;
}

static void storm_until_up(const char *name, int count)
{
    start_storm(name, count);
    ck_assert(wait_until(has_said_up, NULL, 60000));
    ck_assert_str_eq(said.text, "up\n");
}

static void end_storm(void)
{
    barchan_sandbox_terminate(sbx);
    ck_assert(wait_until(exec_ended, &ended, 20000));
    ck_assert_uint_eq(open_now(sbx), 0);
}

static int has_said_of_2000(void *ud)
{
    (void)ud;
    return strstr(said.text, "of 2000\n") != NULL || ended.count > 0;
}

/* Another sandbox of the same runtime is served meanwhile. */
static void make_other(void)
{
    barchan_sandbox *stormy = sbx;
    make_usual_sandbox();
    other = sbx;
    sbx = stormy;
}

static void other_is_served(void)
{
    barchan_sandbox *stormy = sbx;
    sbx = other;
    talk_says("served.example", net_port(server), GET("served.example"), "served by");
    sbx = stormy;
}

/* ---- connections ---- */

static int has_256(void *ud)
{
    return net_accepted(ud) == 256;
}

static int has_more(void *ud)
{
    return net_accepted(ud) > 256;
}

START_TEST(silent_connections_take_their_own_sandboxs_places_only)
{
    make(NET_HTTP, 0);
    make_other();
    storm_until_up("half_open", 300); /* of which the kernel keeps 44 waiting */
    ck_assert(wait_until(has_256, server, 10000));
    ck_assert(!wait_until(has_more, server, 500));
    ck_assert_uint_eq(open_now(sbx), 256);
    other_is_served();
    end_storm();
    ck_assert(wait_until(none_open, other, 15000));
    other_is_served();
}
END_TEST

START_TEST(slow_requests_take_their_own_sandboxs_places_only)
{
    make(NET_HTTP, 100);
    make_other();
    storm_until_up("dribble", 100);
    other_is_served();
    ck_assert_uint_eq(open_now(sbx), 100);
    ck_assert_int_lt(net_received(server), 200); /* the other's */
    end_storm();
}
END_TEST

START_TEST(a_storm_of_resets_leaves_nothing)
{
    make(NET_ECHO, 0);
    int before = count_fds();
    char arguments[64];
    snprintf(arguments, sizeof arguments, "%d resets 1900", net_port(server));
    barchan_exec_result result = run_script("network_storm.py", arguments);
    ck_assert_msg(strcmp(result.out.data, "echo\n") == 0, "%s%s", result.out.data,
                  result.err_out.data);
    barchan_exec_result_clear(&result);
    ck_assert(wait_until(none_open, sbx, 20000));
    net_stop(server); /* its descriptors are the test's */
    server = NULL;
    ck_assert_int_le(count_fds(), before);
}
END_TEST

START_TEST(killed_programs_leave_nothing)
{
    make(NET_ECHO, 0);
    char arguments[64];
    snprintf(arguments, sizeof arguments, "%d killed 10", net_port(server));
    barchan_exec_result result = run_script("network_storm.py", arguments);
    ck_assert_msg(strcmp(result.out.data, "killed\n") == 0, "%s%s", result.out.data,
                  result.err_out.data);
    barchan_exec_result_clear(&result);
    ck_assert(wait_until(none_open, sbx, 20000));
}
END_TEST

START_TEST(a_flood_of_queries_takes_no_turn_of_others)
{
    make(NET_HTTP, 0);
    make_other();
    storm_until_up("queries", 0);
    int64_t began = monotonic_ms();
    for (int i = 0; i < 5; i++) {
        other_is_served();
    }
    ck_assert_int_lt(monotonic_ms() - began, 15000);
    end_storm();
}
END_TEST

static int64_t processor_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* A host with few descriptors left: it neither ends nor spins, and goes on afterwards. */
START_TEST(descriptors_that_run_out_are_waited_for)
{
    make(NET_HTTP, 0);
    make_other();
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)count_fds() + 40;
    setrlimit(RLIMIT_NOFILE, &few);
    storm_until_up("half_open", 200);
    int64_t used = processor_ms();
    for (int64_t began = monotonic_ms(); monotonic_ms() - began < 1000;) {
        barchan_runtime_pump(rt, 100, NULL);
    }
    ck_assert_int_lt(processor_ms() - used, 500);
    ck_assert_uint_lt(open_now(sbx), 41);
    setrlimit(RLIMIT_NOFILE, &before);
    end_storm();
    other_is_served();
}
END_TEST

/* ---- what is kept ---- */

static barchan_exec_result reach_many(int count)
{
    char arguments[64];
    snprintf(arguments, sizeof arguments, "%d hosts %d", net_port(server), count);
    barchan_exec_result result = run_script("network_storm.py", arguments);
    ck_assert_msg(strcmp(result.out.data, "done\n") == 0, "%s%s", result.out.data,
                  result.err_out.data);
    return result;
}

static barchan_network_rules few_entries(void)
{
    return (barchan_network_rules){.allow = entries("served.example:@", "127.0.0.1:@", NULL)};
}

START_TEST(hosts_are_counted_together_when_they_are_many)
{
    make_sandbox(BARCHAN_NETWORK_ALLOW, few_entries());
    barchan_exec_result result = reach_many(1500);
    ck_assert_uint_eq(result.denied_count, 64);
    barchan_exec_result_clear(&result);
    barchan_network_usage usage;
    uint64_t denied = 0;
    ck_assert_int_eq(barchan_sandbox_network(sbx, &usage, NULL), 0);
    ck_assert_uint_eq(usage.count, 1025);
    for (size_t i = 0; i < usage.count; i++) {
        denied += usage.hosts[i].denied;
    }
    ck_assert_uint_eq(denied, 1500);
    ck_assert_str_eq(usage.hosts[1024].host, "");
    ck_assert_uint_eq(usage.hosts[1024].denied, 1500 - 1024);
    barchan_network_usage_clear(&usage);
}
END_TEST

static void refuse(barchan_sandbox *sandbox, barchan_connect *connect, const char *host, int port,
                   void *ud)
{
    (void)sandbox;
    (void)host;
    (void)port;
    ++*(int *)ud;
    barchan_connect_answer(connect, 0);
}

START_TEST(nobody_is_asked_without_end)
{
    int asked = 0;
    barchan_network_rules rules = few_entries();
    rules.on_connect = refuse;
    rules.ud = &asked;
    make_sandbox(BARCHAN_NETWORK_ALLOW, rules);
    barchan_exec_result result = reach_many(250);
    ck_assert_int_eq(asked, 250);
    ck_assert_str_eq(result.denied[0].rule, "refused when asked");
    barchan_exec_result_clear(&result);
    result = reach_many(300);
    ck_assert_int_eq(asked, 256);
    barchan_exec_result_clear(&result);
    /* The last of them were asked about no more, and are refused for want of an entry. */
    result = talk("more.example", 80, GET("more.example"));
    was_denied(&result, "more.example", 80, "not in the allow-list");
    ck_assert_int_eq(asked, 256);
}
END_TEST

/* ---- memory ---- */

static void bounded_memory(net_kind kind, const char *name, int count, long limit_kib)
{
    make(kind, 0);
    barchan_exec_result result = sh("true");
    barchan_exec_result_clear(&result);
    long before = resident_kib();
    storm_until_up(name, count);
    for (int64_t began = monotonic_ms(); monotonic_ms() - began < 1000;) {
        barchan_runtime_pump(rt, 20, NULL);
    }
    long grown = resident_kib() - before;
    printf("%s: %d connections, %ld KiB more\n", name, count, grown);
    ck_assert_uint_eq(open_now(sbx), (size_t)count);
    ck_assert_int_lt(grown, limit_kib * MEMORY_FACTOR);
    end_storm();
}

/* 64 KiB for each way that waits, as much for the server's thread, and what belongs to both. */
START_TEST(what_nobody_reads_is_not_gathered)
{
    bounded_memory(NET_SOURCE, "never_reads", 100, 100L * (160 + path_kib) + 4096);
}
END_TEST

START_TEST(what_no_server_reads_is_not_gathered)
{
    bounded_memory(NET_DEAF, "never_read", 100, 100L * (160 + path_kib) + 4096);
}
END_TEST

static int fds_are_back(void *ud)
{
    return count_fds() <= *(int *)ud;
}

START_TEST(a_thousand_at_once)
{
    make(NET_ECHO, 2000);
    int before = count_fds();
    long memory = resident_kib();
    int64_t began = monotonic_ms();
    barchan_exec *exec = start_storm("many", 1000);
    ck_assert(wait_until(has_said_of_2000, NULL, 60000));
    ck_assert_str_eq(said.text, "2000 of 2000\n");
    long grown = resident_kib() - memory;
    printf("a thousand connections, each used twice: %d ms, %ld KiB more\n",
           (int)(monotonic_ms() - began), grown);
    ck_assert_uint_eq(open_now(sbx), 1000);
    ck_assert_int_eq(net_accepted(server), 1000);
    ck_assert_int_lt(grown, 1000L * (48 + path_kib / 4) *
                                MEMORY_FACTOR); /* with the server's thousand threads */
    barchan_exec_cancel(exec);
    ck_assert(wait_until(exec_ended, &ended, 20000));
    ck_assert(wait_until(none_open, sbx, 20000));
    net_stop(server);
    server = NULL;
    ck_assert(wait_until(fds_are_back, &before, 20000));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {silent_connections_take_their_own_sandboxs_places_only,
                                  slow_requests_take_their_own_sandboxs_places_only,
                                  a_storm_of_resets_leaves_nothing,
                                  killed_programs_leave_nothing,
                                  a_flood_of_queries_takes_no_turn_of_others,
                                  descriptors_that_run_out_are_waited_for,
                                  hosts_are_counted_together_when_they_are_many,
                                  nobody_is_asked_without_end,
                                  what_nobody_reads_is_not_gathered,
                                  what_no_server_reads_is_not_gathered,
                                  a_thousand_at_once,
                                  NULL};
    Suite *suite = suite_create("network_storm");
    add_tests(suite, "network_storm", setup_storm, teardown_storm, tests);
    return run_suite(suite);
}
