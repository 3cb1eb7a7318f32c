/* Memory for values that must not be found elsewhere: not in a core dump, not in swap where the
 * limit of locked memory allows that, not in a forked child, and zero again when it is given back.
 */
#ifndef BC_EGRESS_SECRET_MEMORY_H
#define BC_EGRESS_SECRET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, whole pages; NULL: out of memory. */
void *bc_secret_alloc(size_t len);
/* `len` as it was asked for. NULL is ignored. */
void bc_secret_free(void *memory, size_t len);
void bc_secret_wipe(void *memory, size_t len);
/* Takes as long whatever they are. */
bool bc_secret_equal(const void *a, const void *b, size_t len);

#endif
