/* The guest program that is embedded in the library, and a descriptor to execute it from. */
#ifndef BC_SANDBOX_GUEST_IMAGE_H
#define BC_SANDBOX_GUEST_IMAGE_H

#include <stddef.h>
#include "base/error.h"

extern const unsigned char bc_guest_image[], bc_guest_image_end[];
size_t bc_guest_image_size(void);

/* The installed copy at `path` when its bytes are the embedded ones; with a NULL path a sealed
 * file in memory. Returns a descriptor, which the caller closes, or a failure. */
int bc_guest_image_open(const char *path, barchan_error *err);

#endif
