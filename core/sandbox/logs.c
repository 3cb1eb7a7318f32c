/* What a detached sandbox's commands have printed, asked of its holder. */
#include <stdlib.h>
#include <barchan/detached.h>
#include "ask.h"
#include "base/limits.h"
#include "channel/held.h"

/* Each takes at least its head of 12 bytes in one answer. */
#define MAX_ENTRIES (BC_FRAME_MAX_FROM_GUEST / 12u)

struct logs_call {
    barchan_sandbox *sbx;
    barchan_logs_fn done;
    void *ud;
};

static int read_logs(bc_wire_reader *in, barchan_logs *logs, barchan_log_entry *entries)
{
    logs->dropped = bc_wire_u64(in);
    logs->next = bc_wire_u64(in);
    uint32_t count = bc_wire_u32(in);
    if (in->bad || count > MAX_ENTRIES) return -1;
    for (uint32_t i = 0; i < count; i++) {
        barchan_log_entry *entry = &entries[i];
        entry->command = bc_wire_u32(in);
        uint32_t type = bc_wire_u32(in);
        entry->len = bc_wire_u32(in);
        entry->data = (const char *)bc_wire_take(in, entry->len);
        if (in->bad || (type != BC_FRAME_OUT && type != BC_FRAME_ERR)) return -1;
        entry->stream = type == BC_FRAME_OUT ? BARCHAN_STREAM_OUT : BARCHAN_STREAM_ERR;
    }
    logs->entries = entries;
    logs->count = count;
    return bc_wire_done(in) ? 0 : -1;
}

static int on_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    struct logs_call *call = ud;
    barchan_logs logs = {0};
    barchan_error lacking;
    barchan_log_entry *entries = NULL;
    if (err == NULL) {
        entries = malloc(MAX_ENTRIES * sizeof *entries);
        if (entries == NULL) {
            bc_error_nomem(&lacking);
            err = &lacking;
        } else if (read_logs(in, &logs, entries) < 0) {
            free(entries);
            return -1; /* asked again, with an error */
        }
    }
    call->done(err == NULL ? &logs : NULL, err, call->ud);
    free(entries);
    bc_sandbox_unref(call->sbx);
    free(call);
    return 0;
}

static int ask_for_logs(barchan_sandbox *sbx, uint32_t question, uint64_t cursor,
                        int64_t patience_ms, barchan_logs_fn done, void *ud, barchan_error *err)
{
    int rc = bc_sandbox_check(sbx, err);
    if (rc == 0 && done == NULL) rc = bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    if (rc == 0 && sbx->connection == NULL) {
        rc = bc_error_set(err, BARCHAN_EUNSUPPORTED,
                          "only detached sandboxes keep what commands print");
    }
    struct logs_call *call = rc < 0 ? NULL : malloc(sizeof *call);
    if (rc == 0 && call == NULL) rc = bc_error_nomem(err);
    if (rc < 0) return rc;
    *call = (struct logs_call){.sbx = sbx, .done = done, .ud = ud};
    bc_sandbox_ref(sbx);
    rc = bc_ask_start(sbx, question, cursor, patience_ms, on_answer, call, err);
    if (rc == 0) return 0;
    bc_sandbox_unref(sbx);
    free(call);
    return rc;
}

int barchan_sandbox_logs_start(barchan_sandbox *sbx, uint64_t cursor, barchan_logs_fn done,
                               void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.logs");
    return ask_for_logs(sbx, BC_HELD_ASK_LOGS, cursor, BC_ASK_PATIENCE_MS, done, ud, err);
}

int barchan_sandbox_logs_follow_start(barchan_sandbox *sbx, uint64_t cursor, barchan_logs_fn done,
                                      void *ud, barchan_error *err)
{
    BC_OPERATION("sandbox.logs");
    return ask_for_logs(sbx, BC_HELD_ASK_FOLLOW, cursor, -1, done, ud, err);
}
