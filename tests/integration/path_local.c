/* The library is handed the listeners, as of the sandboxes of this machine. */
#include "sandbox_path.h"

const int path_kib = 0;

int create_sandbox(barchan_sandbox **out, barchan_runtime *runtime, const barchan_profile *profile,
                   barchan_error *err)
{
    return barchan_sandbox_create(out, runtime, profile, err);
}
