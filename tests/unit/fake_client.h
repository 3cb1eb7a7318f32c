/* A client of a holder that is the test, and says what it likes; the guest is one, too. */
#ifndef TESTS_FAKE_CLIENT_H
#define TESTS_FAKE_CLIENT_H

#include "fake_guest.h"

extern int client; /* its connection */
extern int over;   /* how often the holder's end was told */

struct exec {
    uint32_t flags, columns, rows, argc;
    int64_t timeout_ms;
    uint64_t limit;
};

void set_up_held(void);
void tear_down_held(void);
void client_says(uint32_t type, uint32_t stream, const void *data, size_t len);
int next_frame(int fd, bc_frame *frame);
void client_hears(uint32_t type, uint32_t stream, bc_frame *frame);
void guest_hears(uint32_t type, uint32_t stream, bc_frame *frame);
void is_cut_off(void);
void greet(void);
bc_wire_writer exec_payload(struct exec e);
void say_exec(uint32_t stream, struct exec e);
void say_file(uint32_t stream, uint32_t op, uint32_t flags);
void say_ask(uint32_t stream, uint32_t what, uint64_t argument);
void start_command(uint32_t flags);

#endif
