/* Time. Deadlines use CLOCK_BOOTTIME: it runs during suspend and ignores changes of the date. */
#ifndef BC_BASE_CLOCK_H
#define BC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t bc_clock_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t bc_clock_ms(void)
{
    return bc_clock_us() / 1000;
}

/* How long this thread has run. */
static inline int64_t bc_clock_thread_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Milliseconds since 1970, for records that people read. */
static inline int64_t bc_wall_clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

#endif
