/*
 * Files of a sandbox, read and written by a process inside it, under the user of its commands.
 */
#ifndef BARCHAN_FILES_H
#define BARCHAN_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_file_call barchan_file_call;

typedef enum barchan_file_type {
    BARCHAN_FILE_REGULAR = 1,
    BARCHAN_FILE_DIRECTORY = 2,
    BARCHAN_FILE_SYMLINK = 3,
    BARCHAN_FILE_FIFO = 4,
    BARCHAN_FILE_SOCKET = 5,
    BARCHAN_FILE_DEVICE = 6
} barchan_file_type;

typedef enum barchan_file_change {
    BARCHAN_FILE_ADDED = 1,
    BARCHAN_FILE_MODIFIED = 2, /* its contents, its rights, or what type it is of */
    BARCHAN_FILE_DELETED = 3
} barchan_file_change;

typedef struct barchan_file_info {
    char *path; /* in a list: relative to the listed directory; any bytes but NUL */
    size_t path_len;
    barchan_file_type type;     /* of what was deleted: as it was; so are the fields below */
    barchan_file_change change; /* in a list of changes; otherwise 0 */
    uint64_t size;
    uint32_t mode; /* permission bits */
    int64_t mtime_ms;
    char *link_target; /* of a symlink, otherwise NULL */
} barchan_file_info;

typedef enum barchan_file_op {
    BARCHAN_FILE_READ = 1,   /* bytes from offset, at most limit; symlinks are followed */
    BARCHAN_FILE_WRITE = 2,  /* atomic (new file, then rename), parents are created */
    BARCHAN_FILE_APPEND = 3, /* adds to the end, in place; parents are created */
    BARCHAN_FILE_LIST = 4,   /* entries below a directory, `depth` levels, sorted by path */
    BARCHAN_FILE_STAT = 5,   /* of the name itself: a symlink is not followed */
    BARCHAN_FILE_MKDIR = 6,  /* with parents; an existing directory is fine */
    BARCHAN_FILE_REMOVE = 7, /* a file, a link or an empty directory; with `recursive` a tree */
    BARCHAN_FILE_RENAME = 8, /* path to new_path, replacing a file there */
    BARCHAN_FILE_CHANGES = 9 /* see barchan_file_changes; path is the target of a mount, or NULL */
} barchan_file_op;

/* What a source returns when it has nothing yet, and a sink when it has taken the chunk but wants
 * no more for now. Either is called again after barchan_file_resume. */
enum { BARCHAN_FILE_LATER = 0x7fff0001 };
/* Fills `buffer`; returns how many bytes, 0 at the end, BARCHAN_FILE_LATER, or negative to give up.
 * Must not block for long: it runs inside the pump. */
typedef long (*barchan_source_fn)(void *buffer, size_t capacity, void *ud);
/* Takes a chunk; returns 0, BARCHAN_FILE_LATER (256 KiB at most still come, those under way), or
 * negative to give up. */
typedef int (*barchan_sink_fn)(const void *data, size_t len, void *ud);

typedef struct barchan_file_request {
    size_t struct_size;
    barchan_file_op op;
    const char *path;
    size_t path_len; /* 0: strlen(path) */
    const char *new_path;
    size_t new_path_len;
    const void *data; /* write and append: the bytes, or a source: */
    size_t data_len;
    barchan_source_fn source;
    barchan_sink_fn sink; /* read: gets the bytes instead of the result */
    void *ud;             /* of source and sink */
    uint64_t offset;
    uint64_t limit;     /* read: 0: without a sink 64 MiB (more is BARCHAN_ELIMIT), else none */
    uint32_t mode;      /* write: permission bits of a new file, 0: 0644; mkdir: 0: 0755 */
    int recursive;      /* remove */
    int depth;          /* list: 0 or 1: the directory's own entries; at most 64 */
    int64_t timeout_ms; /* 0: 60 s without progress */
    barchan_cancel *cancel;
} barchan_file_request;

typedef struct barchan_file_result {
    barchan_bytes data;         /* read without a sink */
    uint64_t bytes;             /* read, write, append: how many were moved */
    uint64_t size;              /* read: the whole file's size when it was opened */
    barchan_file_info *entries; /* list: all; stat: one */
    size_t entry_count;
    int truncated; /* list, changes: 1 when there were more than 100,000 entries, or some were left
                      out: paths longer than 16 KiB; changes: also what lies deeper than 128
                      levels, or in folders that commands have closed to their own user */
} barchan_file_result;

BARCHAN_API void barchan_file_result_clear(barchan_file_result *result);

typedef void (*barchan_file_done_fn)(barchan_file_result *result, const barchan_error *err,
                                     void *ud);

/* Does a file operation and waits. Errors are precise: not_found, exists, is_a_directory,
 * not_a_directory, not_a_regular_file, permission, no_space, not_empty, limit. Nothing hangs on a
 * FIFO or device. Clear `result` when this returned 0; it may be NULL where nothing comes back. */
BARCHAN_API int barchan_sandbox_file(barchan_sandbox *sbx, const barchan_file_request *request,
                                     barchan_file_result *result, barchan_error *err);
/* `data` and the paths are copied; `done` is called exactly once and may take parts out of the
 * result by setting them to NULL. `out` may be NULL; the call's handle ends with `done`. */
BARCHAN_API int barchan_sandbox_file_start(barchan_file_call **out, barchan_sandbox *sbx,
                                           const barchan_file_request *request,
                                           barchan_file_done_fn done, void *ud, barchan_error *err);
BARCHAN_API void barchan_file_cancel(barchan_file_call *call);
/* After BARCHAN_FILE_LATER: asks the source again, or lets the sink have more, in the next pump.
 * The time in between does not count as time without progress. */
BARCHAN_API void barchan_file_resume(barchan_file_call *call);

/* The common operations in one line each; all wait. */
BARCHAN_API int barchan_file_read(barchan_sandbox *sbx, const char *path, barchan_bytes *out,
                                  barchan_error *err); /* free with barchan_bytes_clear */
BARCHAN_API int barchan_file_write(barchan_sandbox *sbx, const char *path, const void *data,
                                   size_t len, barchan_error *err);
BARCHAN_API int barchan_file_mkdir(barchan_sandbox *sbx, const char *path, barchan_error *err);
BARCHAN_API int barchan_file_remove(barchan_sandbox *sbx, const char *path, int recursive,
                                    barchan_error *err);
/* What commands have changed in a copy-on-write mount, sorted by path: each name that is new, that
 * is not what it was, or that is gone, with paths relative to the mount. The parts of a folder that
 * is new or gone are told one by one; a folder in which only something else changed is not told,
 * nor are times alone. `target` names the mount; NULL: the only one, or, in a sandbox without one,
 * /workspace, where everything is new but what a template had there. A picture of a moment only
 * while no command runs: pause the sandbox before. */
BARCHAN_API int barchan_file_changes(barchan_sandbox *sbx, const char *target,
                                     barchan_file_result *result, barchan_error *err);
/* 1 or 0; negative on failure. */
BARCHAN_API int barchan_file_exists(barchan_sandbox *sbx, const char *path, barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
