#include "options.h"

#include <string.h>

/* No options struct will be so large: it is a struct_size that was never set. */
#define MAX_BYTES ((size_t)4096)

int bc_options_copy(void *to, size_t size, const void *from, barchan_error *err)
{
    size_t given;
    memset(to, 0, size);
    if (from == NULL) return 0;
    memcpy(&given, from, sizeof given);
    /* A struct ends where a word does: anything else would cut a pointer in two. */
    if (given < sizeof given || given > MAX_BYTES || given % sizeof given != 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "struct_size is %zu; set it to sizeof the struct",
                            given);
    }
    for (size_t i = size; i < given; i++) {
        if (((const char *)from)[i] == 0) continue;
        return bc_error_set(err, BARCHAN_EUNSUPPORTED,
                            "an option is set that this version (%s) does not have",
                            barchan_version());
    }
    memcpy(to, from, given < size ? given : size);
    return 0;
}
