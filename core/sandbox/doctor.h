/* The report of `barchan_doctor` while it is written. */
#ifndef BC_SANDBOX_DOCTOR_H
#define BC_SANDBOX_DOCTOR_H

#include "base/buf.h"

/* "ok", "missing" or "info"; `remedy` is "" when there is none. Failures are kept in the
 * buffer's state by the caller's last check: an entry that does not fit is left out. */
void bc_doctor_add(bc_buf *json, const char *name, const char *state, const char *detail,
                   const char *remedy);

/* doctor_probes.c: what can be told by looking at the host. */
void bc_doctor_probe_host(bc_buf *json);

#endif
