/* Calls that other threads hand to the runtime's own, and its wake-ups. */
#include "loop_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/limits.h"

struct bc_post {
    bc_post *next;
    barchan_post_fn fn;
    void *ud;
};

static void on_post_readable(uv_poll_t *poll, int status, int events)
{
    barchan_runtime *rt = poll->data;
    uint64_t value;
    ssize_t n = read(rt->post_fd, &value, sizeof value);
    (void)n; /* non-blocking: a race with another wake-up is fine */
    (void)status;
    (void)events;
}

int bc_posts_run(barchan_runtime *rt)
{
    if (!bc_posts_waiting(rt)) return 0;
    pthread_mutex_lock(&rt->post_lock);
    bc_post *post = rt->posts;
    rt->posts = NULL;
    rt->posts_tail = &rt->posts;
    atomic_store(&rt->post_count, 0);
    pthread_mutex_unlock(&rt->post_lock);
    int count = 0;
    rt->dispatching++;
    while (post != NULL) {
        bc_post *next = post->next;
        post->fn(rt, post->ud);
        free(post);
        post = next;
        count++;
    }
    rt->dispatching--;
    return count;
}

/* The wake-up for a post may have been read by a uv_run that dispatched nothing. */
int bc_posts_waiting(barchan_runtime *rt)
{
    return atomic_load(&rt->post_count) > 0;
}

void bc_runtime_kick(barchan_runtime *rt)
{
    uint64_t one = 1;
    ssize_t n = write(rt->post_fd, &one, sizeof one);
    (void)n; /* only fails when the counter is full, and then it is readable already */
}

int barchan_runtime_post(barchan_runtime *rt, barchan_post_fn fn, void *ud, barchan_error *err)
{
    BC_OPERATION("runtime.post");
    if (rt == NULL || fn == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "post needs a runtime and a function");
    }
    /* The lock may have been copied while it was held. */
    if (!bc_runtime_is_own(rt)) return bc_runtime_check(rt, err);
    bc_post *post = malloc(sizeof *post);
    if (post == NULL) return bc_error_nomem(err);
    *post = (bc_post){.fn = fn, .ud = ud};
    pthread_mutex_lock(&rt->post_lock);
    int closed = rt->posts_closed, full = atomic_load(&rt->post_count) >= BC_POST_MAX;
    if (!closed && !full) {
        *rt->posts_tail = post;
        rt->posts_tail = &post->next;
        atomic_fetch_add(&rt->post_count, 1);
        /* Under the lock: once it is released, the runtime may run the post and be destroyed. */
        bc_runtime_kick(rt);
    }
    pthread_mutex_unlock(&rt->post_lock);
    if (!closed && !full) return 0;
    free(post);
    if (closed) return bc_error_set(err, BARCHAN_ECLOSED, "the runtime is being destroyed");
    return bc_error_set(err, BARCHAN_ELIMIT,
                        "%d posts wait already: the runtime's thread does not pump", BC_POST_MAX);
}

void bc_posts_end(barchan_runtime *rt)
{
    pthread_mutex_lock(&rt->post_lock);
    rt->posts_closed = 1;
    pthread_mutex_unlock(&rt->post_lock);
    bc_posts_run(rt);
}

int bc_posts_open(barchan_runtime *rt, barchan_error *err)
{
    rt->post_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rt->post_fd < 0) return bc_error_set_os(err, errno, "create an eventfd");
    int uv = uv_poll_init(&rt->loop, &rt->post_poll, rt->post_fd);
    if (uv == 0) {
        rt->post_poll.data = rt;
        uv = uv_poll_start(&rt->post_poll, UV_READABLE, on_post_readable);
    }
    return uv < 0 ? bc_error_set_os(err, -uv, "watch an eventfd") : 0;
}
