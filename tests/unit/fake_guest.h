/*
 * A sandbox whose backend is the test: the test is its guest and writes whatever it likes into the
 * channel. Every breach ends that sandbox with protocol_error and leaves the runtime working.
 */
#ifndef TESTS_FAKE_GUEST_H
#define TESTS_FAKE_GUEST_H

#include <check.h>
#include <string.h>
#include "sandbox/internal.h"

extern barchan_runtime *rt;
extern barchan_sandbox *sbx;
extern int guest; /* the test's end of the channel */

/* What the callbacks of the library have told. */
struct seen {
    int created, created_code;
    int exec_done, file_done, file_code;
    char message[600];
    barchan_exec_reason reason;
    size_t out_len;
    uint64_t dropped;
};
extern struct seen seen;

/* Around each test: a sandbox that is being created, or is ready. */
void set_up(void);
void set_up_ready(void);
/* Ready, with a network that its guest carries. */
void set_up_carrying(const barchan_network_rules *rules);
void tear_down(void);

void pump(void);
barchan_sandbox_info status(void);
/* The sandbox has ended, for this reason, and was to be killed. */
void broke_the_protocol(void);
/* The backend tells that it is gone, and nobody holds it any more. */
void bury(void);

void on_exec(barchan_exec *exec, barchan_exec_result *result, void *ud);
void on_file(barchan_file_result *result, const barchan_error *err, void *ud);
/* With a limit for what is kept of its output. */
void start_exec(int64_t limit);
void start_file(barchan_file_op op);

/* What the guest says. */
void say_raw(const void *data, size_t len);
void say(uint32_t type, uint32_t stream, const void *payload, size_t len);
/* For a payload of up to 70,000 bytes; the next call takes the same memory. */
bc_wire_writer payload(void);
void say_ready(void);
void say_exit(bc_exit e);
/* The end of a file call, with a status and words. */
void say_file_done(uint32_t stream, uint32_t status, const char *words);

#endif
