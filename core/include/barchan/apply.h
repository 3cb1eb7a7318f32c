/*
 * Takes over what commands have changed in a copy-on-write mount (barchan/files.h,
 * barchan_file_changes): writes it onto a folder of the host, which may be the mount's source.
 *
 * The guest is hostile here, too. Whatever it answers, nothing outside of the folder is touched: no
 * symbolic link in it is followed, and only regular files, folders and, when asked for, links that
 * stay in the folder are made; FIFOs, sockets and devices never. Of a new file's rights those of
 * reading, writing and running are kept, as far as the host's umask allows; an existing file keeps
 * its own, but for the right to run it, and loses attributes and access lists. As root a file keeps
 * its owner, and what is new belongs to the owner of the folder that it is in, but for links;
 * otherwise all is the caller's. What is in the folder is the guest's work all the same: read it
 * before you run it, and mind names such as .git, whose hooks and settings other programs run.
 * `paths` takes over a part.
 *
 * No contents of the host's are lost. A file that somebody has changed since the sandbox was made
 * (its ctime is later) and that was not written through this handle before is a conflict; so is a
 * folder that is to go but has something more in it, and a link or a file where a folder should be.
 * In another folder than the source a file may only be replaced when it is as the source's, and
 * that unchanged. Each file is written under a temporary name and takes its place when it is whole;
 * what it has replaced is looked at once more before it goes, where the file system can exchange
 * two names (renameat2(2)); elsewhere before it is replaced. A hard link to it elsewhere keeps the
 * old bytes. New and changed files are written first, then what is to go is removed. A host that is
 * killed meanwhile may leave one file .barchan-… of 16 hexadecimal digits in the folder: the new
 * bytes, or what they have just replaced.
 *
 * The changes are those of a moment: pause the sandbox, or let no command run.
 */
#ifndef BARCHAN_APPLY_H
#define BARCHAN_APPLY_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/files.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_apply_call barchan_apply_call;

typedef enum barchan_on_conflict {
    BARCHAN_ON_CONFLICT_REFUSE = 0,   /* nothing is applied: BARCHAN_ECONFLICT, naming the first */
    BARCHAN_ON_CONFLICT_SKIP = 1,     /* the others are applied */
    BARCHAN_ON_CONFLICT_OVERWRITE = 2 /* what was changed is replaced or removed, too. In the
                                      mount's own source also what others have put into a folder
                                      that commands have removed; elsewhere such a folder stays, and
                                      so do links in the way */
} barchan_on_conflict;

typedef struct barchan_apply_options {
    size_t struct_size;
    const char *target;       /* of the mount; NULL: as barchan_file_changes */
    const char *const *paths; /* only these and what is below them, NULL-terminated; NULL: all */
    barchan_on_conflict on_conflict;
    int dry_run; /* 1: only says what would happen; a conflict is no error */
    int links;   /* 1: makes symbolic links that stay in the folder; otherwise they are skipped */
    uint64_t max_bytes; /* of all files together; 0: the sandbox's disk limit */
    int64_t timeout_ms; /* of the list and of each file by itself; 0: 60 s without progress */
    barchan_cancel *cancel;
} barchan_apply_options;

typedef enum barchan_apply_outcome {
    BARCHAN_APPLY_APPLIED = 0,  /* applied; in a dry run: would be */
    BARCHAN_APPLY_CONFLICT = 1, /* left as it is on the host */
    BARCHAN_APPLY_SKIPPED = 2   /* not of a kind that is applied */
} barchan_apply_outcome;

typedef struct barchan_apply_entry {
    char *path; /* the result's */
    size_t path_len;
    barchan_file_change change;
    barchan_file_type type;
    barchan_apply_outcome outcome;
    const char *why; /* of a conflict or what was skipped, for people; static */
} barchan_apply_entry;

typedef struct barchan_apply_result {
    barchan_apply_entry *entries; /* sorted by path */
    size_t entry_count;
    size_t applied, conflicts, skipped;
    uint64_t bytes; /* written */
} barchan_apply_result;
BARCHAN_API void barchan_apply_result_clear(barchan_apply_result *result);

typedef void (*barchan_apply_done_fn)(barchan_apply_result *result, const barchan_error *err,
                                      void *ud);

/* Applies and waits. `dest` is a folder that exists; its own path may have links. On failure what
 * was applied before stays: the message says how much that is. BARCHAN_EINVAL: an option, or no
 * such mount; BARCHAN_ENOTFOUND, BARCHAN_ENOTDIR: `dest`; BARCHAN_ECONFLICT; BARCHAN_ELIMIT: the
 * list of changes is not complete, or more than max_bytes would be written; BARCHAN_ELOST: the
 * sandbox has ended; BARCHAN_EBUSY: inside a callback. Clear `result`, which may be NULL, when this
 * returned 0. The host's files are read, written and synced on the runtime's thread, a few names at
 * a time. */
BARCHAN_API int barchan_sandbox_apply_changes(barchan_sandbox *sbx, const char *dest,
                                              const barchan_apply_options *options,
                                              barchan_apply_result *result, barchan_error *err);
/* The same without waiting. `done` is called exactly once, never inside this call, with a result,
 * which it may take by zeroing it, or NULL and the error. `out` may be NULL; the handle ends with
 * `done`. */
BARCHAN_API int barchan_sandbox_apply_changes_start(barchan_apply_call **out, barchan_sandbox *sbx,
                                                    const char *dest,
                                                    const barchan_apply_options *options,
                                                    barchan_apply_done_fn done, void *ud,
                                                    barchan_error *err);
/* Ends it between two files, or in one, of which nothing is left: `done` comes with
 * BARCHAN_ECANCELLED. NULL is ignored. */
BARCHAN_API void barchan_apply_cancel(barchan_apply_call *call);

#ifdef __cplusplus
}
#endif
#endif
