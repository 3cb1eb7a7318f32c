/* A running snapshot or fork: what barchan_snapshot_cancel gets. */
#ifndef BC_SANDBOX_SNAPSHOT_H
#define BC_SANDBOX_SNAPSHOT_H

#include "templates.h"

struct barchan_snapshot_call {
    void (*cancel)(barchan_snapshot_call *call);
};

/* A template of the sandbox's files, with this name or, for forks, without one. `done` has the
 * build, which it may take by zeroing it. The options are complete, and copied. */
typedef void (*bc_snapshot_fn)(bc_template_build *build, const barchan_template *info,
                               const barchan_error *err, void *ud);
int bc_snapshot_start(barchan_snapshot_call **out, barchan_sandbox *sbx, const char *name,
                      const barchan_snapshot_options *options, bc_snapshot_fn done, void *ud,
                      barchan_error *err);

#endif
