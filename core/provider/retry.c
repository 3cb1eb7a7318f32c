/* Whether a request that failed is sent again, and when. */
#include <stdio.h>
#include <string.h>
#include "base/random.h"
#include "model_internal.h"

/* 0.5, 1, 2, … 8 s, less up to a quarter: those who failed together do not come back together. */
static int64_t backoff_ms(int retries)
{
    int64_t wait = BC_MODEL_FIRST_BACKOFF_MS;
    while (retries-- > 0 && wait < BC_MODEL_MAX_BACKOFF_MS)
        wait *= 2;
    if (wait > BC_MODEL_MAX_BACKOFF_MS) wait = BC_MODEL_MAX_BACKOFF_MS;
    return wait - bc_random_below((long)wait / 4);
}

/* Behind the message, which says what failed: why it was left at that. The words are the same in
 * each run: a recording gives the same twice. */
static void say_why(barchan_error *err, const char *limit, int64_t limit_ms)
{
    char asked[64] = "the wait would be";
    if (err->retry_after_ms >= 0) {
        snprintf(asked, sizeof asked, "the server asks to wait %.15g s,",
                 (double)err->retry_after_ms / 1000);
    }
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; not sent again: %s longer than %s of %.15g s", asked, limit,
             (double)limit_ms / 1000);
}

int64_t bc_retry_wait(const barchan_model *model, barchan_error *err, int retries, int64_t now_ms,
                      int64_t deadline_ms)
{
    if (!err->retryable || retries >= model->max_retries) return -1;
    int64_t wait = err->retry_after_ms >= 0 ? err->retry_after_ms : backoff_ms(retries);
    if (wait > model->max_retry_wait_ms) {
        say_why(err, "max_retry_wait", model->max_retry_wait_ms);
    } else if (now_ms + wait >= deadline_ms) {
        say_why(err, "what is left of the timeout", model->timeout_ms);
    } else {
        return wait;
    }
    return -1;
}
