/* A running command, shared by exec.c (its life) and exec_output.c (what it writes). */
#ifndef BC_SANDBOX_EXEC_H
#define BC_SANDBOX_EXEC_H

#include "internal.h"

struct bc_exec_output {
    bc_buf data;         /* kept, or waiting while paused */
    uint64_t limit;      /* capped: the guest may send no more */
    uint32_t uncredited; /* received and not given back yet */
};

struct barchan_exec {
    bc_stream stream; /* first */
    barchan_runtime *rt;
    barchan_exec_done_fn done;
    void *done_ud;
    barchan_exec_result result;
    bc_defer defer; /* for ends that do not come from the guest */
    bc_timer *timer;
    int64_t late_ms, late_left_ms; /* when it goes off, 0: never; what was left when paused */
    bc_cancel_watch *cancel;
    int finished;
    int cancelled; /* asked for */
    /* output */
    int terminal;
    int streaming, paused, delivering;
    barchan_output_fn on_output;
    barchan_drain_fn on_drain;
    void *ud;
    struct bc_exec_output out, err_out;
    int exit_pending; /* the guest reported the end while paused */
    /* input */
    uint32_t in_credit;
    int in_open;                     /* barchan_exec_write is allowed */
    int in_full;                     /* a write was refused: on_drain is due */
    bc_buf in_data;                  /* the given input that credit does not cover yet */
    int in_end_due;                  /* the end follows in_data */
    struct barchan_sandbox *counted; /* whose `running` counts it */
    bc_ledger_mark before;           /* refusals and failures before it began */
};

/* exec_output.c */
void bc_exec_output_init(struct bc_exec_output *output, uint64_t limit, int streaming);
void bc_exec_output_clear(struct bc_exec_output *output);
int bc_exec_on_output(barchan_exec *exec, const bc_frame *frame);
/* Gives out what waited while paused; 1 when nothing is left. */
int bc_exec_deliver(barchan_exec *exec);
/* Moves what was kept into the result; negative when the guest's count cannot be right. */
int bc_exec_take_output(struct bc_exec_output *output, uint64_t dropped, barchan_bytes *bytes);

/* exec_input.c */
int bc_exec_keep_input(barchan_exec *exec, const barchan_exec_options *options, barchan_error *err);
/* Sends as much as credit allows of the input that was given as a whole. */
void bc_exec_send_input(barchan_exec *exec);
int bc_exec_on_grant(barchan_exec *exec, const bc_frame *frame);

/* exec_request.c: builds the payload of BC_FRAME_EXEC. BARCHAN_ELIMIT when it is too large for
 * any execve. */
int bc_exec_encode(bc_buf *out, const barchan_sandbox *sbx, const barchan_exec_options *options,
                   barchan_error *err);
/* The caps and times with their defaults filled in, and the sandbox's limit of time. */
void bc_exec_defaults(barchan_exec_options *options, const barchan_sandbox *sbx);

/* held_network.c: negative: malformed, or the second one. */
int bc_held_take_told(const bc_frame *frame, barchan_exec_result *result);

/* exec.c */
void bc_exec_finish(barchan_exec *exec);

#endif
