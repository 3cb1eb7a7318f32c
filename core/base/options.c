#include "options.h"

#include <string.h>

int bc_options_copy(void *to, size_t size, const void *from, barchan_error *err)
{
    size_t given;
    memset(to, 0, size);
    if (from == NULL) return 0;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given) {
        return bc_error_set(err, BARCHAN_EINVAL, "struct_size is %zu; set it to sizeof the struct",
                            given);
    }
    memcpy(to, from, given < size ? given : size);
    return 0;
}
