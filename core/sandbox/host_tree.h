/* Names below a folder of the host, looked up without following any link and without leaving the
 * folder, whatever the name says and others do meanwhile. */
#ifndef BC_SANDBOX_HOST_TREE_H
#define BC_SANDBOX_HOST_TREE_H

#include <sys/stat.h>

typedef struct bc_host_tree {
    int fd;         /* of the folder; -1: none */
    int no_openat2; /* it is refused here: each part of a name is opened by itself */
    dev_t dev;
    ino_t ino;
} bc_host_tree;

/* 0 or -errno. Links in `path` itself are followed: it is the caller's. */
int bc_host_tree_open(bc_host_tree *tree, const char *path);
void bc_host_tree_close(bc_host_tree *tree);
int bc_host_tree_is_same(const bc_host_tree *a, const bc_host_tree *b);

/* The folder that holds the last part of `path`, and that part: a descriptor, or -errno: -ENOENT
 * when a folder on the way is missing, -ENOTDIR or -ELOOP when something else stands there.
 * `path` has no empty parts, "." or ".."; one that has is -EINVAL. */
int bc_host_tree_parent(bc_host_tree *tree, const char *path, const char **name);
/* A file or folder below it for reading: a descriptor, or -1. */
int bc_host_tree_open_file(bc_host_tree *tree, const char *path);
/* What is there, a link itself: 0, or -errno as above; -ENOENT also when only the last part is
 * missing, and then *parent_missing is 0. */
int bc_host_tree_stat(bc_host_tree *tree, const char *path, struct stat *st, int *parent_missing);

#endif
