/* An allocation of the library's that fails, for programs linked with --wrap=malloc, --wrap=calloc
 * and
 * --wrap=realloc: the linker sends its calls to these. One include in a program. */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H

#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);

static long countdown = -1; /* the allocation that fails; negative: none */
static long failures;

static int fails_now(void)
{
    if (countdown < 0 || countdown-- > 0) return 0;
    failures++;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return fails_now() ? NULL : __real_realloc(pointer, size);
}

#endif
