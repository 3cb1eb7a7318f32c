/*
 * What snapshots and forks cost, as ratios to posix_spawn of /bin/true in the same run: with 100
 * and with 10,000 files of 100 bytes, and one of 100 MiB. Medians. XDG_DATA_HOME says where the
 * templates are; what is copied to a disk depends on it.
 */
#include <barchan/barchan.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 200

static barchan_runtime *rt;
static barchan_error err;

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_snapshot: %s: %s\n", what, err.message);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, compare);
    return samples[count / 2];
}

static double spawn_us(void)
{
    static char *const argv[] = {(char *)"true", NULL};
    double samples[MOST];
    for (int i = 0; i < MOST; i++) {
        pid_t pid;
        int status;
        double begin = now_us();
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL) != 0) die("spawn");
        waitpid(pid, &status, 0);
        samples[i] = now_us() - begin;
    }
    return median(samples, MOST);
}

static barchan_sandbox *create(const char *name)
{
    barchan_sandbox *sbx;
    const barchan_profile profile = {.struct_size = sizeof profile, .template_name = name};
    if (barchan_sandbox_create(&sbx, rt, &profile, &err) < 0) die("create");
    return sbx;
}

static void run(barchan_sandbox *sbx, const char *command)
{
    barchan_exec_result r;
    const barchan_exec_options options = {.struct_size = sizeof options, .command = command};
    if (barchan_sandbox_exec(sbx, &options, &r, &err) < 0 || r.exit_code != 0) die(command);
    barchan_exec_result_clear(&r);
}

/* Until it is gone, and its template free. */
static void end(barchan_sandbox *sbx)
{
    barchan_usage usage = {.struct_size = sizeof usage};
    barchan_sandbox_terminate(sbx);
    barchan_sandbox_usage(sbx, &usage, &err);
    barchan_sandbox_destroy(sbx);
    barchan_runtime_pump(rt, 30, NULL);
}

static void print(const char *what, double us, double base)
{
    printf("%-44s %10.0f us %8.2f\n", what, us, us / base);
}

static void measure(const char *name, const char *fill, int rounds, double base)
{
    double taken[MOST], begun[MOST], host[MOST], forked[MOST];
    const barchan_snapshot_options replace = {.struct_size = sizeof replace, .replace = 1};
    barchan_sandbox *sbx = create("host"), *forks[3];
    run(sbx, fill);
    for (int i = 0; i < rounds; i++) {
        double at = now_us();
        if (barchan_sandbox_snapshot(sbx, "bench", &replace, NULL, &err) < 0) die("snapshot");
        taken[i] = now_us() - at;
        barchan_runtime_pump(rt, 30, NULL);
        at = now_us();
        barchan_sandbox *other = create("bench");
        begun[i] = now_us() - at;
        end(other);
        at = now_us();
        other = create("host");
        host[i] = now_us() - at;
        end(other);
        at = now_us();
        if (barchan_sandbox_fork(sbx, forks, 3, NULL, &err) < 0) die("fork");
        forked[i] = now_us() - at;
        for (int k = 0; k < 3; k++) {
            end(forks[k]);
        }
    }
    printf("%s, %d rounds\n", name, rounds);
    print("  snapshot", median(taken, rounds), base);
    print("  create from the template", median(begun, rounds), base);
    print("  create from host, for comparison", median(host, rounds), base);
    print("  fork(3), snapshot included", median(forked, rounds), base);
    end(sbx);
    if (barchan_template_remove(rt, "bench", &err) < 0) die("remove");
}

int main(void)
{
    if (barchan_runtime_create(&rt, NULL, &err) < 0) die("runtime");
    double base = spawn_us();
    print("posix_spawn of /bin/true", base, base);
    measure("no files", "true", 20, base);
    measure("100 files", "for i in $(seq 100); do head -c 100 /dev/zero > f$i; done", 20, base);
    measure(
        "10,000 files in 100 folders",
        "for d in $(seq 100); do mkdir $d; for i in $(seq 100); do"
        " echo 123456789012345678901234567890123456789012345678901234567890 > $d/$i; done; done",
        10, base);
    measure("one file of 100 MiB", "head -c 104857600 /dev/urandom > big", 5, base);
    barchan_runtime_destroy(rt);
    return 0;
}
