/*
 * Folders and files of the host's that the operator copies to or from a sandbox. What comes out of
 * a sandbox has names that somebody hostile chose: it is written below one folder only, never
 * through a link, and a file appears when it is whole.
 */
#ifndef BC_RUNTIME_HOST_TREE_H
#define BC_RUNTIME_HOST_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

typedef enum bc_host_kind { BC_HOST_FILE = 1, BC_HOST_FOLDER = 2, BC_HOST_OTHER = 3 } bc_host_kind;

typedef struct bc_host_entry {
    char *path; /* below the folder that was listed, "a/b" */
    bc_host_kind kind;
    unsigned mode; /* permission bits */
} bc_host_entry;

typedef struct bc_host_list {
    bc_host_entry *entries; /* folders before what is in them */
    size_t count;
} bc_host_list;

/* What a path leads to, links followed. */
int bc_host_stat(const char *path, bc_host_kind *kind, unsigned *mode, barchan_error *err);
/* All below a folder. A link is OTHER, whatever it leads to: it could lead out. */
int bc_host_list_read(bc_host_list *list, const char *path, barchan_error *err);
void bc_host_list_clear(bc_host_list *list);

/* A folder to write below; its descriptor, or a failure. Made, not its parents, when it is not
 * there. */
int bc_host_root_open(const char *path, barchan_error *err);
/* Paths below it: words between slashes, none of them ".", ".." or empty. */
int bc_host_root_mkdir(int root_fd, const char *path, unsigned mode, barchan_error *err);

typedef struct bc_host_new_file {
    int folder_fd, fd; /* -1: not open */
    unsigned mode;
    uid_t uid; /* as root: of what it replaces; -1: nobody's */
    gid_t gid;
    char name[256], temporary[32];
} bc_host_new_file;

int bc_host_new_file_open(bc_host_new_file *file, int root_fd, const char *path, unsigned mode,
                          barchan_error *err);
int bc_host_new_file_write(bc_host_new_file *file, const void *data, size_t len,
                           barchan_error *err);
/* Gives it its name, in the place of a file, whose rights it keeps (and as root its owner), or of a
 * link. New, it has `mode` less the umask. */
int bc_host_new_file_commit(bc_host_new_file *file, barchan_error *err);
/* Without a commit nothing of it stays. */
void bc_host_new_file_close(bc_host_new_file *file);

#endif
