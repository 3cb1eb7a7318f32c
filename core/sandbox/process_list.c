/* The processes of a sandbox, asked of process 1. */
#include <stdlib.h>
#include <string.h>
#include "ask.h"
#include "base/limits.h"

struct list_call {
    barchan_processes_fn done;
    void *ud;
};

void barchan_process_list_clear(barchan_process_list *list)
{
    if (list == NULL) return;
    for (size_t i = 0; i < list->count; i++) {
        free(list->processes[i].command);
    }
    free(list->processes);
    *list = (barchan_process_list){0};
}

/* 0, -1 for what breaks the rules, or -ENOMEM's status. */
static int read_one(bc_wire_reader *in, barchan_process_info *info)
{
    bc_process p;
    bc_wire_get_process(in, &p);
    const char *command = bc_wire_string(in, BC_PROCESS_MAX_COMMAND);
    if (in->bad || p.pid > INT32_MAX || p.parent > INT32_MAX || p.threads > INT32_MAX ||
        p.cpu_us > INT64_MAX || p.state < 'A' || p.state > 'z') {
        return -1;
    }
    *info = (barchan_process_info){
        .pid = (int)p.pid,
        .parent = (int)p.parent,
        .threads = (int)p.threads,
        .state = (char)p.state,
        .exec_id = p.exec,
        .cpu_us = (int64_t)p.cpu_us,
        .memory_bytes = p.memory_bytes,
        .command = strdup(command),
    };
    return info->command == NULL ? BARCHAN_ENOMEM : 0;
}

static int read_list(bc_wire_reader *in, barchan_process_list *list)
{
    uint32_t total = bc_wire_u32(in), count = bc_wire_u32(in);
    if (in->bad || count > BC_PROCESS_MAX_LISTED || count > total) return -1;
    list->total = total;
    list->processes = calloc(count + 1, sizeof *list->processes);
    if (list->processes == NULL) return BARCHAN_ENOMEM;
    int rc = 0;
    for (; list->count < count && rc == 0; list->count += rc == 0) {
        rc = read_one(in, &list->processes[list->count]);
    }
    return rc == 0 && !bc_wire_done(in) ? -1 : rc;
}

static int on_answer(bc_wire_reader *in, const barchan_error *err, void *ud)
{
    struct list_call *call = ud;
    barchan_process_list list = {0};
    barchan_error nomem;
    int rc = err == NULL ? read_list(in, &list) : 0;
    if (rc == -1) {
        barchan_process_list_clear(&list);
        return -1; /* asked again, with the error */
    }
    if (rc < 0) {
        bc_error_nomem(&nomem);
        err = &nomem;
    }
    call->done(err == NULL ? &list : NULL, err, call->ud);
    barchan_process_list_clear(&list);
    free(call);
    return 0;
}

int barchan_sandbox_processes_start(barchan_sandbox *sbx, barchan_processes_fn done, void *ud,
                                    barchan_error *err)
{
    BC_OPERATION("sandbox.processes");
    if (done == NULL) return bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    struct list_call *call = malloc(sizeof *call);
    if (call == NULL) return bc_error_nomem(err);
    *call = (struct list_call){.done = done, .ud = ud};
    rc = bc_ask_start(sbx, BC_ASK_PROCESSES, 0, BC_ASK_PATIENCE_MS, on_answer, call, err);
    if (rc < 0) free(call);
    return rc;
}

struct list_wait {
    bc_outcome outcome;
    barchan_process_list *list;
};

static void on_list(barchan_process_list *list, const barchan_error *err, void *ud)
{
    struct list_wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (list == NULL) return;
    *wait->list = *list;
    *list = (barchan_process_list){0}; /* it is the caller's now */
}

int barchan_sandbox_processes(barchan_sandbox *sbx, barchan_process_list *list, barchan_error *err)
{
    BC_OPERATION("sandbox.processes");
    struct list_wait wait = {.list = list};
    if (list == NULL) return bc_error_set(err, BARCHAN_EINVAL, "list is NULL");
    *list = (barchan_process_list){0};
    int rc = bc_sandbox_check(sbx, err);
    if (rc < 0) return rc;
    barchan_runtime *rt = sbx->rt;
    rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_sandbox_processes_start(sbx, on_list, &wait, err);
    return rc < 0 ? rc : bc_outcome_wait(&wait.outcome, rt, err);
}
