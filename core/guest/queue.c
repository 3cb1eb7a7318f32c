#include "init.h"

#include <stdlib.h>

unsigned char *queue_room(struct queue *queue, size_t len)
{
    if (queue->start + queue->len + len <= queue->cap) {
        return queue->data + queue->start + queue->len;
    }
    if (queue->start >= queue->cap / 2 && queue->len + len <= queue->cap) {
        memmove(queue->data, queue->data + queue->start, queue->len);
        queue->start = 0;
        return queue->data + queue->len;
    }
    size_t cap = queue->cap < 4096 ? 4096 : queue->cap;
    while (cap < queue->len + len) {
        cap *= 2;
    }
    unsigned char *data = malloc(cap);
    if (data == NULL) return NULL;
    if (queue->len > 0) memcpy(data, queue->data + queue->start, queue->len);
    free(queue->data);
    *queue = (struct queue){.data = data, .len = queue->len, .cap = cap};
    return data + queue->len;
}

bool queue_put(struct queue *queue, const void *data, size_t len)
{
    if (len == 0) return true; /* there may be no room at all yet */
    unsigned char *room = queue_room(queue, len);
    if (room == NULL) return false;
    memcpy(room, data, len);
    queue->len += len;
    return true;
}

void queue_drop(struct queue *queue, size_t len)
{
    queue->start += len;
    queue->len -= len;
    if (queue->len == 0) queue->start = 0;
}

void queue_free(struct queue *queue)
{
    free(queue->data);
    *queue = (struct queue){0};
}
