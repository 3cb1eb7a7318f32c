/* Changes on their way to a folder of the host: apply.c has the call's life, apply_check.c says
 * what may be done, apply_write.c does it, one name at a time. */
#ifndef BC_SANDBOX_APPLY_H
#define BC_SANDBOX_APPLY_H

#include <barchan/apply.h>
#include "host_tree.h"
#include "internal.h"

/* A file of the host as it was looked at. */
struct seen {
    int present;
    dev_t dev;
    ino_t ino;
    mode_t mode;
    off_t size;
    struct timespec ctime, mtime;
    uid_t uid;
    gid_t gid;
};

struct change {
    barchan_file_info info; /* taken from the guest's list */
    barchan_apply_outcome outcome;
    const char *why;
    struct seen seen;
    int late; /* takes the place of a folder, which is emptied first */
};

enum apply_stage {
    APPLY_LISTING,
    APPLY_CHECKING,
    APPLY_WRITING,
    APPLY_REMOVING,
    APPLY_REPLACING,
    APPLY_FINISHED
};

struct barchan_apply_call {
    barchan_runtime *rt;
    barchan_sandbox *sbx; /* a reference */
    barchan_apply_done_fn done;
    void *ud;
    bc_defer defer;
    bc_cancel_watch *cancel;
    barchan_error error;
    char *dest_path;
    char **paths;
    barchan_on_conflict on_conflict;
    int dry_run, links;
    uint64_t max_bytes, bytes;
    int64_t timeout_ms;
    bc_mount mount;
    bc_host_tree dest, source; /* the mount's; may be none, or the same */
    int same_tree;
    enum apply_stage stage;
    size_t next; /* change that is looked at next */
    size_t applied;
    struct change *changes; /* sorted by path */
    size_t change_count;
    struct compare { /* a file of dest with that of the source, a part in each slice */
        int fds[2];  /* -1: none is being compared */
        off_t at;
    } compare;
    barchan_file_call *file; /* a file is on its way */
    /* The file that is being written. */
    int parent_fd, out_fd;
    dev_t made_dev; /* what stands, or stood, under the temporary name */
    ino_t made_ino;
    char temporary[40]; /* its name until it has its own; "": nothing is to be removed */
};

/* apply.c */
void bc_apply_free(barchan_apply_call *call);
/* The guest's list of changes, or why there is none. */
void bc_apply_listed(barchan_file_result *list, const barchan_error *err, void *ud);

/* apply_check.c: fills outcome, why, seen and late. 1: it is not done, call it again in the next
 * slice. */
int bc_apply_check(barchan_apply_call *call, struct change *change);
/* After all of them: a folder in which something stays does not go. */
void bc_apply_check_folders(barchan_apply_call *call);
/* What is there now, if anything: 0 or -errno. */
int bc_apply_look_in(int parent, const char *name, struct seen *seen);
int bc_apply_is_as_seen(const struct seen *seen, const struct seen *now);

/* apply_write.c. 0; BARCHAN_ECONFLICT with change->why: nothing was done; other negatives: the
 * call's error is filled. */
int bc_apply_folder(barchan_apply_call *call, struct change *change);
int bc_apply_link(barchan_apply_call *call, struct change *change);
int bc_apply_remove(barchan_apply_call *call, struct change *change);
/* A file: begin, then the bytes, then end or abort. */
int bc_apply_file_begin(barchan_apply_call *call, struct change *change);
int bc_apply_file_write(barchan_apply_call *call, const void *data, size_t len);
int bc_apply_file_end(barchan_apply_call *call, struct change *change);
void bc_apply_file_abort(barchan_apply_call *call);

/* apply_compare.c: whether a file of dest is as the source's: 1, 0, or -1: ask again. */
int bc_apply_compare(barchan_apply_call *call, const char *path);
void bc_apply_compare_end(barchan_apply_call *call);

/* apply_memory.c: the files that were written for this sandbox. */
void bc_apply_remember(barchan_sandbox *sbx, const struct stat *st);
int bc_apply_is_ours(const barchan_sandbox *sbx, const struct seen *seen);

#endif
