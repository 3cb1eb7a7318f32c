#include "secret_memory.h"

#include <string.h>
#include <sys/mman.h>

void bc_secret_wipe(void *memory, size_t len)
{
    if (len > 0) explicit_bzero(memory, len);
}

void *bc_secret_alloc(size_t len)
{
    void *memory =
        mmap(NULL, len > 0 ? len : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    /* Each is worth having without the others. */
    madvise(memory, len, MADV_DONTDUMP);
    madvise(memory, len, MADV_WIPEONFORK);
    mlock(memory, len);
    return memory;
}

void bc_secret_free(void *memory, size_t len)
{
    if (memory == NULL) return;
    bc_secret_wipe(memory, len);
    munmap(memory, len > 0 ? len : 1); /* unlocks it, too */
}

bool bc_secret_equal(const void *a, const void *b, size_t len)
{
    const volatile unsigned char *left = a, *right = b;
    unsigned differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= (unsigned)(left[i] ^ right[i]);
    return differ == 0;
}
