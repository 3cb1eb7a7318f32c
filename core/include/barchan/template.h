/*
 * Templates: the files of a sandbox, kept under a name, from which other sandboxes begin; and
 * forks, sandboxes that begin with the files of another that lives on.
 *
 * A snapshot copies what is in /home/user, /workspace, /tmp and /var/tmp out of the sandbox into a
 * template: a folder of this user's, $XDG_DATA_HOME/barchan/templates/NAME (otherwise below
 * ~/.local/share), with one tree of files for each of these places and a file manifest.json. A
 * profile whose template_name is NAME has them back: it starts from what the sandbox itself started
 * from ("host", or a directory), with the trees copy-on-write in their places. What commands change
 * there is in the new sandbox's storage and within its limits, and nobody else sees it. Creating
 * takes as long for many files as for few. A template is whole by itself: one that is made from a
 * sandbox which began from another template holds the files of both, so there are no chains.
 *
 * Kept are files, folders, symbolic and hard links, holes, permission bits and times of
 * modification. Not kept: set-user-id, set-group-id and sticky bits, extended attributes, owners
 * (everything belongs to the sandbox's user), what is in /run and /dev/shm, processes. What the
 * profile mounts is not part of it, nor what commands have changed in a copy-on-write mount; give
 * the new profile the same mounts, which stand above the template's files. FIFOs, sockets and
 * devices are left out and counted. What the sandbox's user may not read, as a file of mode 0000,
 * fails the snapshot, which names it, and so do folders more than 128 deep.
 *
 * Nothing may run meanwhile: with a process in the sandbox, or a file operation, a snapshot is
 * BARCHAN_EBUSY, and the message names the processes. While it is being taken, new commands and
 * file operations that write are BARCHAN_EBUSY (another connection's command is spawn_failed,
 * EAGAIN).
 *
 * In a template /workspace is what barchan_file_changes compares with when it is not mounted:
 * without a target it tells what has changed since.
 *
 * Files of a template are a guest's work: names, links and contents are to be treated as such by
 * whoever opens the folder on the host. It needs what copy-on-write mounts need (barchan_mount):
 * Linux 6.6, overlayfs, and as root a file system that can map owners.
 *
 * Locks. A sandbox holds its template until it is gone (barchan_sandbox_terminate says how that is
 * known); so long the template cannot be removed (BARCHAN_EBUSY). It can be replaced: those who
 * have the old one keep it, and it goes with the last of them. A program that is killed leaves the
 * old template, the new one, or a folder without a name, which the next list or snapshot removes.
 * Nothing waits for the disk: after a failure of power a template that was made just before may be
 * damaged.
 *
 * All of it works on detached sandboxes, too (barchan/detached.h): the files come over the
 * connection. Files of the host are written on the runtime's thread, as they come.
 */
#ifndef BARCHAN_TEMPLATE_H
#define BARCHAN_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>
#include <barchan/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct barchan_template {
    char *name;         /* [a-z0-9][a-z0-9._-]{0,63}, but not "host" */
    char *base;         /* "host", or the path of a directory */
    char *note;         /* how it was made, as whoever made it says; may be "" */
    int64_t created_ms; /* since 1970 */
    uint64_t entries;   /* files, folders and links */
    uint64_t bytes;     /* of files; holes are none, and a file of several names counts once */
    uint64_t left_out;  /* FIFOs, sockets and devices of the sandbox */
} barchan_template;
BARCHAN_API void barchan_template_clear(barchan_template *info);

/* ---- taking one ------------------------------------------------------------------------ */

typedef struct barchan_snapshot_call barchan_snapshot_call;

typedef struct barchan_snapshot_options {
    size_t struct_size;
    int replace;        /* 1: in the place of one that has this name */
    const char *note;   /* kept in the manifest, at most 4000 bytes; may be NULL */
    int64_t timeout_ms; /* 0: 60 s without progress */
    barchan_cancel *cancel;
} barchan_snapshot_options;

/* `info` is borrowed for the call, NULL with err. */
typedef void (*barchan_snapshot_fn)(const barchan_template *info, const barchan_error *err,
                                    void *ud);

/* Makes a template of the sandbox's files and waits. The sandbox lives on, and may be paused.
 * BARCHAN_EBUSY: something runs in it; BARCHAN_EEXISTS: there
 * is one of this name; BARCHAN_ELIMIT: more than the sandbox's limits allow, or too deep;
 * BARCHAN_EPERMISSION: what cannot be read. On failure everything is as before. `info` may be NULL;
 * clear it when this returned 0. */
BARCHAN_API int barchan_sandbox_snapshot(barchan_sandbox *sbx, const char *name,
                                         const barchan_snapshot_options *options,
                                         barchan_template *info, barchan_error *err);
/* The same without waiting. `done` is called exactly once when this returned 0, never inside this
 * call. `out` may be NULL; the handle ends with `done`. */
BARCHAN_API int barchan_sandbox_snapshot_start(barchan_snapshot_call **out, barchan_sandbox *sbx,
                                               const char *name,
                                               const barchan_snapshot_options *options,
                                               barchan_snapshot_fn done, void *ud,
                                               barchan_error *err);
/* Ends a snapshot or fork; `done` comes with BARCHAN_ECANCELLED. NULL is ignored. */
BARCHAN_API void barchan_snapshot_cancel(barchan_snapshot_call *call);

/* ---- forks ----------------------------------------------------------------------------- */

enum { BARCHAN_FORK_MAX = 64 };

typedef struct barchan_fork_options {
    size_t struct_size;
    int64_t timeout_ms; /* of the snapshot: 0: 60 s without progress; each creation has 30 s */
    barchan_cancel *cancel;
} barchan_fork_options;

/* `forks` and what they point to belong to the callee; the array itself is borrowed for the call.
 * With err there are none. */
typedef void (*barchan_fork_fn)(barchan_sandbox **forks, size_t count, const barchan_error *err,
                                void *ud);

/* Makes `count` sandboxes, 1 to BARCHAN_FORK_MAX, that begin with the sandbox's files as they are
 * now, and waits until all are ready; all of them, or none. Each has the profile of the sandbox:
 * template, mounts, env, limits, network (with the callbacks and `ud` of its rules), and a whole
 * lease from now on. They are this runtime's own, also when the sandbox is a detached one; of such
 * a one they have no network. The files are copied once, to the host's disk, and shared
 * copy-on-write; they go with the last of the forks. `forks` is an array of `count`. A sandbox with
 * secrets (barchan/secret.h) is not forked: BARCHAN_EUNSUPPORTED. */
BARCHAN_API int barchan_sandbox_fork(barchan_sandbox *sbx, barchan_sandbox **forks, size_t count,
                                     const barchan_fork_options *options, barchan_error *err);
BARCHAN_API int barchan_sandbox_fork_start(barchan_snapshot_call **out, barchan_sandbox *sbx,
                                           size_t count, const barchan_fork_options *options,
                                           barchan_fork_fn done, void *ud, barchan_error *err);

/* ---- this user's templates ------------------------------------------------------------- */

typedef struct barchan_templates {
    barchan_template *list; /* sorted by name */
    size_t count;
    size_t removed; /* leftovers of programs that were killed, that are gone now */
} barchan_templates;

BARCHAN_API int barchan_template_list(barchan_runtime *rt, barchan_templates *templates,
                                      barchan_error *err);
BARCHAN_API void barchan_templates_clear(barchan_templates *templates);
/* BARCHAN_ENOTFOUND: there is none; the message says which there are. Clear `info`. */
BARCHAN_API int barchan_template_info(barchan_runtime *rt, const char *name, barchan_template *info,
                                      barchan_error *err);
/* BARCHAN_EBUSY: sandboxes use it, or one that was just ended still does; retryable. */
BARCHAN_API int barchan_template_remove(barchan_runtime *rt, const char *name, barchan_error *err);

#ifdef __cplusplus
}
#endif
#endif
