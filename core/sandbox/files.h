/* A running file operation, shared by files.c (its life) and files_list.c (its entries). */
#ifndef BC_SANDBOX_FILES_H
#define BC_SANDBOX_FILES_H

#include "internal.h"

struct barchan_file_call {
    bc_stream stream; /* first */
    barchan_runtime *rt;
    barchan_file_op op;
    char *path; /* for messages; any bytes */
    size_t path_len;
    barchan_file_done_fn done;
    void *done_ud;
    barchan_file_result result;
    barchan_error error; /* code 0: none so far */
    bc_defer defer;
    bc_timer *timer;
    int64_t timeout_ms;
    bc_cancel_watch *cancel;
    int finished;
    int cancelling;
    int waiting; /* for barchan_file_resume: no time runs */
    /* in: the bytes to write */
    bc_buf in_data;
    barchan_source_fn source;
    int in_open;
    uint32_t in_credit;
    /* out: the bytes read, or entries */
    barchan_sink_fn sink;
    void *ud;
    bc_buf out_data;
    uint64_t out_bytes;
    uint32_t uncredited;
};

/* files_list.c: entries from the guest's records; negative when they are malformed. */
int bc_file_read_entries(const bc_buf *records, barchan_file_op op, barchan_file_result *result);

/* files.c: the same as the public one, and BC_FILE_PACK, whose sink gets the stream of pack.h. */
#define BC_FILE_PACK ((barchan_file_op)BC_FILE_OP_PACK)
int bc_file_start(barchan_file_call **out, barchan_sandbox *sbx, const barchan_file_request *given,
                  barchan_file_done_fn done, void *ud, barchan_error *err);

/* files_request.c */
int bc_file_check(const barchan_file_request *request, barchan_error *err);
int bc_file_encode(bc_buf *out, const barchan_file_request *request);
/* "read 'notes.txt'", fit for people. */
void bc_file_describe(const barchan_file_call *call, char *text, size_t cap);

#endif
