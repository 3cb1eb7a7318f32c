/* Whether a request that failed is sent again, and when. */
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

int64_t bc_retry_wait(const barchan_model *model, const barchan_error *err, int retries,
                      int64_t now_ms, int64_t deadline_ms)
{
    if (!err->retryable || retries >= model->max_retries) return -1;
    int64_t wait = err->retry_after_ms >= 0 ? err->retry_after_ms : backoff_ms(retries);
    if (wait > model->max_retry_wait_ms || now_ms + wait >= deadline_ms) return -1;
    return wait;
}
