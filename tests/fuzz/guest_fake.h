/* The system that process 1 of a sandbox sees under the fuzzer. */
#ifndef TESTS_GUEST_FAKE_H
#define TESTS_GUEST_FAKE_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

struct fake_system {
    const uint8_t *in; /* what the library sends */
    size_t in_len, step;
    size_t said_len;
    int open_fds, pipes_break, forks_fail;
    int64_t now_ns;
    int connections, questions, words; /* of programs, that are still to come */
    unsigned blocks;                   /* of the heap */
    jmp_buf exit;
    /* What process 1 answers; the one member that is not made new for each life. */
    unsigned char said[1 << 20];
};
extern struct fake_system fake;

#define FAKE_CHANNEL 3

void fake_free_all(void);

/* What the guest's sources are compiled to call. */
long sys_call6(long nr, long a, long b, long c, long d, long e, long f);
void *guest_malloc(size_t size);
void *guest_calloc(size_t count, size_t size);
void *guest_realloc(void *data, size_t size);
void guest_free(void *data);

#endif
