/*
 * What sandboxes cost, as ratios to posix_spawn of the same program in the same run. Each round
 * does every row once, in an order of its own; a row's figure is the median of its rounds.
 *
 *     bench_sandbox [ROUNDS] [PROGRAM]
 */
#include <barchan/barchan.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sandbox/internal.h"

#define MAX_ROUNDS 10000
#define IDLE_COUNT 500
#define THROUGHPUT_COUNT 300
#define REST_US 40000

enum row { SPAWN, CREATE, CREATE_EXEC, WARM, DESTROY, CYCLE, FILE_WRITE, ROWS };
static const char *const names[ROWS] = {
    "posix_spawn", "create alone",          "create + first exec", "warm exec",
    "destroy",     "create, exec, destroy", "write a small file"};
static const char *const targets[ROWS] = {"",       "<= 1.1", "<= 2.3", "<= 1.15",
                                          "<= 0.4", "<= 2.5", ""};

static double *samples[ROWS];
static int counts[ROWS];
static barchan_runtime *rt;
static barchan_sandbox *warm;
static const char *program = "/bin/true";

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_sandbox: %s: %s\n", what, why);
    exit(1);
}

static void note(enum row row, double us)
{
    samples[row][counts[row]++] = us;
}

static void spawn_once(void)
{
    static char path[] = "PATH=/usr/bin:/bin";
    char *argv[] = {(char *)program, NULL}, *envp[] = {path, NULL};
    pid_t pid;
    int status;
    if (posix_spawn(&pid, program, NULL, NULL, argv, envp) != 0) die(program, "posix_spawn");
    waitpid(pid, &status, 0);
}

static barchan_sandbox *create(void)
{
    barchan_sandbox *sbx;
    barchan_error err;
    if (barchan_sandbox_create(&sbx, rt, NULL, &err) < 0) die("create", err.message);
    return sbx;
}

static void exec_once(barchan_sandbox *sbx)
{
    const char *const argv[] = {program, NULL};
    const barchan_exec_options options = {.struct_size = sizeof options, .argv = argv};
    barchan_exec_result result;
    barchan_error err;
    if (barchan_sandbox_exec(sbx, &options, &result, &err) < 0) die("exec", err.message);
    if (result.exit_code != 0) die(program, barchan_exec_reason_name(result.reason));
    barchan_exec_result_clear(&result);
}

/* Until the launcher has reaped it. */
static void destroy(barchan_sandbox *sbx)
{
    bc_room *room = bc_sandbox_room(rt);
    barchan_sandbox_destroy(sbx);
    for (;;) {
        int dying = 0;
        for (barchan_sandbox *s = room->sandboxes; s != NULL; s = s->next) {
            dying += s->handle_dropped;
        }
        if (dying == 0) return;
        barchan_runtime_pump(rt, 100, NULL);
    }
}

/* Lets what the last round left to do in the background be done: the kernel takes network
 * namespaces apart later, the launcher makes the next one. Throughput is measured without. */
static void rest(void)
{
    double until = now_us() + REST_US;
    while (now_us() < until) {
        barchan_runtime_pump(rt, 1, NULL);
    }
}

static void measure_life(void)
{
    rest();
    double t0 = now_us();
    barchan_sandbox *sbx = create();
    double t1 = now_us();
    exec_once(sbx);
    double t2 = now_us();
    destroy(sbx);
    double t3 = now_us();
    note(CREATE, t1 - t0);
    note(CREATE_EXEC, t2 - t0);
    note(DESTROY, t3 - t2);
    note(CYCLE, t3 - t0);
}

static void measure(int what)
{
    double t0 = now_us();
    switch (what) {
    case 0:
        spawn_once();
        note(SPAWN, now_us() - t0);
        break;
    case 1:
        exec_once(warm);
        note(WARM, now_us() - t0);
        break;
    case 2:
        barchan_file_write(warm, "f", "text", 4, NULL);
        note(FILE_WRITE, now_us() - t0);
        break;
    default: measure_life();
    }
}

/* Both by one caller, one after the other. */
static void throughput(void)
{
    double t0 = now_us();
    for (int i = 0; i < THROUGHPUT_COUNT; i++) {
        spawn_once();
    }
    double spawns = THROUGHPUT_COUNT / (now_us() - t0) * 1e6;
    t0 = now_us();
    for (int i = 0; i < THROUGHPUT_COUNT; i++) {
        barchan_sandbox *sbx = create();
        exec_once(sbx);
        barchan_sandbox_destroy(sbx);
    }
    double cycles = THROUGHPUT_COUNT / (now_us() - t0) * 1e6;
    printf("%-24s %10.0f /s, %.2f of %.0f bare spawns/s  >= 0.4\n", "throughput", cycles,
           cycles / spawns, spawns);
    rest();
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(enum row row, int percent)
{
    qsort(samples[row], (size_t)counts[row], sizeof(double), compare);
    return samples[row][counts[row] * percent / 100];
}

static long mem_free_kib(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "MemFree:", 8) == 0) kib = strtol(line + 8, NULL, 10);
    }
    if (file != NULL) fclose(file);
    return kib;
}

/* By what the whole machine has less of; other programs on it add noise. */
static double idle_kib(void)
{
    static barchan_sandbox *idle[IDLE_COUNT];
    long before = mem_free_kib();
    for (int i = 0; i < IDLE_COUNT; i++) {
        idle[i] = create();
    }
    double kib = (double)(before - mem_free_kib()) / IDLE_COUNT;
    for (int i = 0; i < IDLE_COUNT; i++) {
        destroy(idle[i]);
    }
    return kib;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
    if (argc > 2) program = argv[2];
    if (rounds < 1 || rounds > MAX_ROUNDS) die("rounds", "1 to 10000");
    barchan_error err;
    if (barchan_runtime_create(&rt, NULL, &err) < 0) die("runtime", err.message);
    for (int row = 0; row < ROWS; row++) {
        samples[row] = calloc((size_t)rounds + 1, sizeof(double));
        if (samples[row] == NULL) die("samples", "out of memory");
    }
    warm = create();
    exec_once(warm);
    unsigned state = 1;
    for (long i = 0; i < rounds; i++) {
        state = state * 1103515245u + 12345u;
        for (unsigned k = 0; k < 4; k++) {
            measure((int)((k + (state >> 16)) % 4));
        }
    }
    double base = percentile(SPAWN, 50), base10 = percentile(SPAWN, 10);
    printf("%ld rounds of %s as %s\n", rounds, program,
           geteuid() == 0 ? "root" : "an ordinary user");
    printf("%-24s %10s %8s %10s  %s\n", "", "median us", "ratio", "p10 ratio", "target");
    for (int row = 0; row < ROWS; row++) {
        double median = percentile((enum row)row, 50), low = percentile((enum row)row, 10);
        printf("%-24s %10.0f %8.2f %10.2f  %s\n", names[row], median, median / base, low / base10,
               targets[row]);
    }
    throughput();
    printf("%-24s %10.0f KiB\n", "idle sandbox, all in", idle_kib());
    barchan_runtime_destroy(rt);
    return 0;
}
