/* What a sandbox has reached and what not: counts by host, and the last refusals and failures. */
#ifndef BC_EGRESS_LEDGER_H
#define BC_EGRESS_LEDGER_H

#include <barchan/exec.h>
#include <barchan/network.h>

#define BC_LEDGER_MAX_HOSTS 1024u
/* Kept refusals, and as many failures; a command's result takes at most 64 different ones of each.
 */
#define BC_LEDGER_MAX_DENIED 256u
#define BC_LEDGER_MAX_TOLD 64u

typedef struct bc_ledger_host {
    char *host;
    uint64_t connections, denied, failed, bytes_sent, bytes_received;
} bc_ledger_host;

/* The last ones; what the guest does to fill one leaves the other. */
typedef struct bc_ledger_ring {
    barchan_denied *list; /* NULL: none yet, or no memory */
    uint64_t count;       /* of all there were */
} bc_ledger_ring;

/* How many there have been at some moment. */
typedef struct bc_ledger_mark {
    uint64_t denied, unreached;
} bc_ledger_mark;

typedef struct bc_ledger {
    bc_ledger_host *hosts;
    size_t count, capacity;
    bc_ledger_host others; /* of more hosts than that */
    bc_ledger_ring denied, unreached;
} bc_ledger;

void bc_ledger_clear(bc_ledger *ledger);
/* Its number, for bc_ledger_at: places move when hosts are added. */
size_t bc_ledger_find(bc_ledger *ledger, const char *host);
bc_ledger_host *bc_ledger_at(bc_ledger *ledger, size_t number);
/* Counts an event; refusals and failures are kept. */
void bc_ledger_note(bc_ledger *ledger, const barchan_network_event *event);
void bc_ledger_since(const bc_ledger *ledger, bc_ledger_mark mark, barchan_exec_result *result);
int bc_ledger_usage(const bc_ledger *ledger, barchan_network_usage *usage, barchan_error *err);

#endif
