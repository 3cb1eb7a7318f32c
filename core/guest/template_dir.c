#include "launcher.h"

int template_dir_open(const struct world *world, const char *path, char *mounted, size_t cap,
                      struct failure *why)
{
    (void)world, (void)mounted, (void)cap;
    return fail_status(why, BC_WIRE_EUNSUPPORTED, "template %s", path);
}
