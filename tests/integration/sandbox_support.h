/*
 * Shared by the sandbox tests: a runtime and a sandbox per test, and a teardown that looks for
 * what must not stay behind: processes, descriptors, mounts.
 */
#ifndef SANDBOX_SUPPORT_H
#define SANDBOX_SUPPORT_H

#include <barchan/barchan.h>
#include <check.h>
#include <stdint.h>

extern barchan_runtime *rt;
extern barchan_sandbox *sbx;

/* Checked fixtures: rt only, or rt and a sandbox of template "host". */
void setup_runtime(void);
void setup_sandbox(void);
void teardown(void);

/* How many processes are children of this one; it is the subreaper of its descendants. */
int count_children(void);
int first_child(void);
int child_of(int pid); /* its first; 0: none */
int count_descendants(int pid);
int count_fds(void);
int count_mounts(void);
int64_t monotonic_ms(void);
int is_root(void);
/* Whether the sandboxes of this user have control groups here: as root, where they can be made. */
int has_groups(void);
/* Counted and explained in the summary of the tests; 1. */
int skip(const char *why);
/* Waits until `condition(ud)` is true, pumping; false after `limit_ms`. */
int wait_until(int (*condition)(void *ud), void *ud, int limit_ms);

/* Runs a shell command; fails the test when that is not possible. Clear the result. */
barchan_exec_result sh(const char *command);
barchan_exec_result run(const barchan_exec_options *options);
/* Runs it and checks exit code 0 and this output. */
void sh_says(const char *command, const char *expected);

barchan_sandbox_info status_of(barchan_sandbox *sandbox);
/* A condition for wait_until: the sandbox `ud` has ended. */
int has_ended(void *ud);

/* A command that was started: its end is noted by note_end, and exec_ended a condition for
 * wait_until. */
struct ended {
    int count;
    barchan_exec_result result; /* without its bytes */
};
void note_end(barchan_exec *exec, barchan_exec_result *result, void *ud);
int exec_ended(void *ud);

/* File operations that must succeed, or fail with this code. */
barchan_file_result file_done(const barchan_file_request *request);
void file_does(const barchan_file_request *request);
void file_fails(const barchan_file_request *request, int code);
void file_put_text(const char *path, const char *text);
void file_contains(const char *path, const char *text);

#define OPTIONS(...) \
    (&(barchan_exec_options){.struct_size = sizeof(barchan_exec_options), __VA_ARGS__})
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define REQUEST(...) \
    (&(barchan_file_request){.struct_size = sizeof(barchan_file_request), __VA_ARGS__})
#define PROFILE(...) (&(barchan_profile){.struct_size = sizeof(barchan_profile), __VA_ARGS__})

/* Adds a test case with a checked fixture (setup may be NULL) and these tests, ended by NULL. */
void add_tests(Suite *suite, const char *name, void (*setup)(void), void (*end)(void),
               const TTest *const *tests);
/* Runs the suite: exit status for ctest. */
int run_suite(Suite *suite);

#endif
