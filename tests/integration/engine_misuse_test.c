/* Hosts that err, odd files and odd surroundings: an error that says so, or it works; never a
 * crash. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine_support.h"
#include "scratch_locale.h"

START_TEST(null_is_an_error_everywhere)
{
    char *result = (char *)"not touched";
    barchan_tool tool = {.struct_size = sizeof tool, .name = "t"};
    ck_assert_int_eq(barchan_engine_create(NULL, rt, NULL, &err), BARCHAN_EINVAL);
    barchan_engine *other = engine;
    ck_assert_int_eq(barchan_engine_create(&other, NULL, NULL, &err), BARCHAN_EINVAL);
    ck_assert_ptr_null(other);
    ck_assert_int_eq(barchan_engine_call(NULL, "f", NULL, NULL, &result, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_call(engine, NULL, NULL, NULL, &result, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_start(engine, "f", NULL, NULL, NULL, NULL, &err),
                     BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_load_file(engine, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_load_file(NULL, "x", &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_load_string(engine, NULL, "x", 1, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_load_string(engine, "=x", NULL, 1, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_add_tool(engine, NULL, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_add_tool(NULL, &tool, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_set_script(NULL, "a.lua", "", 0, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_answer(engine, 1, NULL, 1, 0, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_answer(NULL, 1, "", 0, 0, &err), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_answer(engine, 1, "x", (size_t)-1, 0, &err), BARCHAN_ELIMIT);
    barchan_engine_destroy(NULL);
    /* The error itself may be missing too. */
    ck_assert_int_eq(barchan_engine_call(engine, "f", "{", NULL, NULL, NULL), BARCHAN_EINVAL);
    ck_assert_int_eq(barchan_engine_load_file(engine, "absent.lua", NULL), BARCHAN_ENOTFOUND);
}
END_TEST

#define FAILS_AT(operation, call)               \
    do {                                        \
        memset(&err, 0x55, sizeof err);         \
        ck_assert_int_lt((call), 0);            \
        ck_assert_str_eq(err.where, operation); \
    } while (0)

START_TEST(each_error_names_its_operation)
{
    barchan_tool nothing = {0};
    barchan_engine_options unset = {0};
    barchan_engine *other;
    FAILS_AT("engine.create", barchan_engine_create(NULL, rt, NULL, &err));
    FAILS_AT("engine.create", barchan_engine_create(&other, rt, &unset, &err));
    FAILS_AT("engine.call", barchan_engine_call(NULL, "f", NULL, NULL, NULL, &err));
    FAILS_AT("engine.call", barchan_engine_call(engine, "f", NULL, NULL, NULL, &err));
    FAILS_AT("engine.start", barchan_engine_start(engine, "f", NULL, NULL, NULL, NULL, &err));
    FAILS_AT("engine.load_file", barchan_engine_load_file(engine, "absent.lua", &err));
    FAILS_AT("engine.load_string", barchan_engine_load_string(engine, "=x", "(", 1, &err));
    FAILS_AT("engine.set_script", barchan_engine_set_script(engine, "x", "", 0, &err));
    FAILS_AT("engine.reload", barchan_engine_reload(engine, &err));
    FAILS_AT("engine.add_tool", barchan_engine_add_tool(engine, &nothing, &err));
    FAILS_AT("engine.answer", barchan_engine_answer(engine, 1, "", 0, 0, &err));
}
END_TEST

START_TEST(a_call_before_any_script_says_to_load_one)
{
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_EINVAL);
    ck_assert_str_eq(err.message, "call 'f': no script with a table of functions is loaded: load "
                                  "one first (barchan_engine_load_file, _load_string)");
}
END_TEST

START_TEST(odd_names_and_arguments)
{
    load("return { f = function(...) return select('#', ...) end, [1] = print, x = 1 }");
    expect("f", NULL, "0");
    expect("f", "null", "1");
    expect_error("x", NULL, BARCHAN_ENOTFOUND, "no function 'x'");
    expect_error("", NULL, BARCHAN_ENOTFOUND, "no function ''");
    expect_error(":", NULL, BARCHAN_ESCRIPT, "not a module name");
    expect_error("os:exit", NULL, BARCHAN_ENOTFOUND, "no function 'exit'");
    expect_error("barchan.cli:main", NULL, BARCHAN_ESCRIPT, "not found");
    expect_error("f", "[1,", BARCHAN_EINVAL, "the arguments");
    expect_error("f", "", BARCHAN_EINVAL, "the arguments");
    ck_assert_int_eq(barchan_engine_load_string(engine, "=x", "return 1\0return 2", 17, &err),
                     BARCHAN_ESCRIPT); /* a NUL is no part of a program */
    ck_assert_int_eq(barchan_engine_load_string(engine, "=x", "", 0, &err), 0);
}
END_TEST

/* ---- files ---- */

static char dir[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t len)
{
    FILE *file = fopen(path_of(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

static void check_file(const char *name, int code, const char *message)
{
    int rc = barchan_engine_load_file(engine, name, &err);
    ck_assert_msg(rc == code, "%s: %d %s", name, rc, rc < 0 ? err.message : "");
    if (rc < 0) ck_assert_msg(strstr(err.message, message) != NULL, "%s: %s", name, err.message);
    if (rc == 0) expect("f", NULL, message);
}

START_TEST(scripts_of_every_kind_of_file)
{
#define GOOD "return { f = function() return 1 end }"
    static char big[(1 << 20) + 2];
    snprintf(dir, sizeof dir, "/tmp/barchan-misuse-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (int library = 0; library < 2; library++) {
        reopen_engine(
            &(barchan_engine_options){.struct_size = sizeof(barchan_engine_options),
                                      .library = (barchan_library)library,
                                      .script_dirs = (const char *[]){"/absent", dir, NULL}});
        write_file("good.lua", GOOD, strlen(GOOD));
        check_file("good.lua", 0, "1");
        write_file("bom.lua", "\xEF\xBB\xBF" GOOD, strlen(GOOD) + 3);
        check_file("bom.lua", 0, "1");
        write_file("shebang.lua", "#!/usr/bin/env x\n" GOOD, strlen(GOOD) + 17);
        check_file("shebang.lua", 0, "1");
        write_file("crlf.lua", "return {\r\n f = function() return 1 end\r\n}\r\n", 42);
        check_file("crlf.lua", 0, "1");
        write_file("line.lua", "#!x\n\nerror 'here'", 17);
        check_file("line.lua", BARCHAN_ESCRIPT, "line.lua:3: here");
        write_file("binary.lua", "\033Lua", 4);
        check_file("binary.lua", BARCHAN_ESCRIPT, "binary");
        write_file("nul.lua", "return\0 {}", 10);
        check_file("nul.lua", BARCHAN_ESCRIPT, "nul.lua:1:");
        write_file("latin.lua", "return { \xe9 = 1 }", 16);
        check_file("latin.lua", BARCHAN_ESCRIPT, "latin.lua:1:");
        write_file("empty.lua", "", 0);
        ck_assert_int_eq(barchan_engine_load_file(engine, "empty.lua", &err), 0);
        memset(big, ' ', sizeof big);
        write_file("big.lua", big, sizeof big);
        check_file("big.lua", BARCHAN_ESCRIPT, "larger than 1024 KiB");
        mkdir(path_of("dir.lua"), 0755);
        check_file("dir.lua", BARCHAN_ENOTREG, "not a regular file");
        mkfifo(path_of("fifo.lua"), 0644);
        check_file("fifo.lua", BARCHAN_ENOTREG, "not a regular file"); /* and does not hang */
        check_file("absent.lua", BARCHAN_ENOTFOUND, "none of the script directories: ");
        check_file("absent.lua", BARCHAN_ENOTFOUND, dir);
        check_file("./absent.lua", BARCHAN_ENOTFOUND, "absent.lua");
        check_file("good.lua", 0, "1");
    }
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- surroundings ---- */

static void expect_child(pid_t pid, int code)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %x", status);
}

START_TEST(a_forked_child_is_refused_and_the_parent_goes_on)
{
    load("return { f = function() return 1 end }");
    pid_t pid = fork();
    if (pid == 0) {
        int call_rc = barchan_engine_call(engine, "f", NULL, NULL, NULL, &err);
        barchan_engine *other;
        int create_rc = barchan_engine_create(&other, rt, NULL, &err);
        _exit(call_rc == BARCHAN_EINVAL && create_rc == BARCHAN_EINVAL ? 0 : 1);
    }
    expect_child(pid, 0);
    expect("f", NULL, "1");
}
END_TEST

START_TEST(destroying_in_a_forked_child_touches_nothing)
{
    struct outcome nap = {0};
    load("return { nap = function() local c <close> = setmetatable({},"
         " { __close = function() print 'closed' end }) require 'barchan'.sleep(60) end }");
    ck_assert_int_eq(barchan_engine_start(engine, "nap", NULL, NULL, on_done, &nap, &err), 0);
    barchan_runtime_pump(rt, 10, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        barchan_engine_destroy(engine);
        _exit(printed[0] == '\0' ? 0 : 1);
    }
    expect_child(pid, 0);
    barchan_engine_destroy(engine);
    engine = NULL;
    ck_assert_int_eq(nap.code, BARCHAN_ECANCELLED);
    ck_assert_ptr_nonnull(strstr(printed, "closed"));
}
END_TEST

START_TEST(an_error_crosses_whole)
{
    static const char text[] =
        "return { f = function() error { code = 'rate_limited', message = 'slow down', where = 'w',"
        " status = 429, os_error = 5, provider_code = 'p', request_id = 'r', retry_after = 1.5,"
        " retryable = true } end, g = function() error { code = 'io', retry_after = 1e300 } end }";
    load(text);
    ck_assert_int_eq(barchan_engine_call(engine, "f", NULL, NULL, NULL, &err), BARCHAN_ERATE);
    ck_assert_ptr_nonnull(strstr(err.message, "slow down"));
    ck_assert_str_eq(err.where, "w");
    ck_assert_int_eq(err.http_status, 429);
    ck_assert_int_eq(err.os_error, 5);
    ck_assert_str_eq(err.provider_code, "p");
    ck_assert_str_eq(err.request_id, "r");
    ck_assert_int_eq(err.retry_after_ms, 1500);
    ck_assert_int_eq(err.retryable, 1);
    ck_assert_int_eq(barchan_engine_call(engine, "g", NULL, NULL, NULL, &err), BARCHAN_EIO);
    ck_assert_int_eq(err.retry_after_ms, -1);
}
END_TEST

static void *use_an_engine(void *ud)
{
    barchan_runtime *own_rt = NULL;
    barchan_engine *own = NULL;
    barchan_error own_err;
    char *result = NULL;
    static const char text[] = "local b = require 'barchan' return { f = function(n)"
                               " for i = 1, 5 do b.sleep(0.001) n = n + i end return n end }";
    int *bad = ud;
    *bad = barchan_runtime_create(&own_rt, NULL, &own_err) < 0 ||
           barchan_engine_create(&own, own_rt, NULL, &own_err) < 0 ||
           barchan_engine_load_string(own, "=t", text, sizeof text - 1, &own_err) < 0 ||
           barchan_engine_call(own, "f", "1", NULL, &result, &own_err) < 0 ||
           strcmp(result, "16") != 0;
    barchan_free(result);
    barchan_engine_destroy(own);
    barchan_runtime_destroy(own_rt);
    return NULL;
}

START_TEST(sixty_four_threads_have_engines_of_their_own)
{
    enum { COUNT = 64 };
    pthread_t threads[COUNT];
    int bad[COUNT];
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_an_engine, &bad[i]), 0);
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(bad[i], 0);
    }
}
END_TEST

/* In a child: everything from the runtime to a call, with the process in some odd state. */
static int whole_life(void)
{
    int bad = 0;
    use_an_engine(&bad);
    return bad;
}

static void limit(int what, rlim_t value)
{
    struct rlimit rlimit = {value, value};
    setrlimit((__rlimit_resource_t)what, &rlimit);
}

START_TEST(few_descriptors_no_stdio_no_environment)
{
    pid_t pid = fork();
    if (pid == 0) {
        limit(RLIMIT_NOFILE, 32);
        _exit(whole_life());
    }
    expect_child(pid, 0);
    for (int descriptors = 3; descriptors < 32; descriptors++) { /* works, or says that it cannot */
        pid = fork();
        if (pid == 0) {
            limit(RLIMIT_NOFILE, (rlim_t)descriptors);
            _exit(whole_life() > 1);
        }
        expect_child(pid, 0);
    }
    pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        _exit(whole_life());
    }
    expect_child(pid, 0);
    pid = fork();
    if (pid == 0) {
        clearenv();
        _exit(chdir("/") != 0 || whole_life());
    }
    expect_child(pid, 0);
}
END_TEST

START_TEST(a_locale_with_a_decimal_comma_changes_nothing)
{
    if (!scratch_locale("de_DE")) {
        printf("SKIP localedef is not there\n");
        return;
    }
    load("local b = require 'barchan' return { f = function(t) return { t[1] + 0.25, 1.5,\n"
         " tostring(1.5):gsub(',', '.') == '1.5', b.json.encode(0.5), b.json.decode '0.75' } end,\n"
         " g = load 'return 2.5' }");
    expect("f", "[0.5]", "[0.75,1.5,true,\"0.5\",0.75]");
    expect("g", NULL, "2.5");
    scratch_locale_drop();
}
END_TEST

START_TEST(the_environment_gives_a_safe_engine_no_scripts)
{
    setenv("BARCHAN_SCRIPTS", "/absent", 1);
    setenv("LUA_PATH", "/tmp/?.lua", 1);
    setenv("LUA_INIT", "error 'ran'", 1);
    reopen_engine(NULL);
    load("return { f = function() return pcall(require, 'surely.not.there') end,"
         " v = function() return require('barchan').version ~= nil end }");
    expect("f", NULL, "false");
    expect("v", NULL, "true");
    unsetenv("BARCHAN_SCRIPTS");
    unsetenv("LUA_PATH");
    unsetenv("LUA_INIT");
}
END_TEST

SUITE_MAIN("engine_misuse", engine_setup, engine_teardown, null_is_an_error_everywhere,
           each_error_names_its_operation, a_call_before_any_script_says_to_load_one,
           odd_names_and_arguments, scripts_of_every_kind_of_file,
           a_forked_child_is_refused_and_the_parent_goes_on,
           destroying_in_a_forked_child_touches_nothing, an_error_crosses_whole,
           sixty_four_threads_have_engines_of_their_own, few_descriptors_no_stdio_no_environment,
           a_locale_with_a_decimal_comma_changes_nothing,
           the_environment_gives_a_safe_engine_no_scripts)
