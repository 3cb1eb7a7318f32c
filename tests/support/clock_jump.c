/* A library to preload: the time of day jumps a year back and forth with each look at it. Clocks
 * that only go on are left alone. */
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

enum { YEAR_SECONDS = 365 * 24 * 3600 };

static time_t jump(void)
{
    static int looks;
    int turn = __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) % 3;
    return turn == 0 ? 0 : turn == 1 ? YEAR_SECONDS : -YEAR_SECONDS;
}

static int real_gettime(clockid_t clock, struct timespec *to)
{
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    return next(clock, to);
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    int rc = real_gettime(clock, to);
    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        to->tv_sec += jump();
    }
    return rc;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to != NULL) *to = now.tv_sec;
    return now.tv_sec;
}
