/* Two threads, two runtimes, nothing shared: each creates sandboxes and runs commands on its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <barchan/barchan.h>

enum { THREADS = 2, ROUNDS = 5 };

struct work {
    int id;
    int done; /* commands that gave what they should */
    barchan_error err;
};

static int round_trip(barchan_runtime *rt, struct work *work)
{
    barchan_sandbox *sbx;
    barchan_exec_result r;
    char command[64], expected[16];
    barchan_profile profile = {.struct_size = sizeof profile};
    if (barchan_sandbox_create(&sbx, rt, &profile, &work->err) < 0) return -1;
    snprintf(command, sizeof command, "echo $((%d * 100))", work->id);
    int len = snprintf(expected, sizeof expected, "%d\n", work->id * 100);
    barchan_exec_options options = {.struct_size = sizeof options, .command = command};
    int rc = barchan_sandbox_exec(sbx, &options, &r, &work->err);
    if (rc == 0) {
        if (r.out.len == (size_t)len) work->done++;
        barchan_exec_result_clear(&r);
    }
    barchan_sandbox_destroy(sbx);
    return rc;
}

static void *thread_main(void *ud)
{
    struct work *work = ud;
    barchan_runtime *rt;
    if (barchan_runtime_create(&rt, NULL, &work->err) < 0) return NULL;
    for (int i = 0; i < ROUNDS; i++) {
        if (round_trip(rt, work) < 0) break;
    }
    barchan_runtime_destroy(rt);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct work work[THREADS] = {{.id = 1}, {.id = 2}};
    int code = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread_main, &work[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        printf("thread %d: %d of %d commands\n", work[i].id, work[i].done, ROUNDS);
        if (work[i].done == ROUNDS) continue;
        fprintf(stderr, "two_runtimes: %s\n", work[i].err.message);
        code = 1;
    }
    return code;
}
