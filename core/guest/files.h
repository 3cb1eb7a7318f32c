/* Small helpers for the set-up: whole files, directories, mounts. They use errno. */
#ifndef GUEST_FILES_H
#define GUEST_FILES_H

#include <stddef.h>

/* 0, or -1 with errno. */
int write_file(const char *path, const char *text);
/* Creates the file with this text and mode 0644. */
int create_file(const char *path, const char *text);
/* Reads a small file as a string, without its last newline; -1 with errno. */
int read_file(const char *path, char *text, size_t cap);
/* Has the process ("self" or a number) killed before others when memory is short. Only what the
 * machine's root has written cannot be lowered again by the process. */
int raise_oom_score(const char *process);
/* Copies at most `max` bytes; a missing source is not a failure: nothing is made. */
int copy_file(const char *from, const char *to, size_t max);
/* Creates `path` and its parents, mode 0755. */
int make_dirs(const char *path);

/* A detached copy of the mounts at `path`; -1 with errno. */
int clone_tree(const char *path);
/* Attaches it at `path` and closes it. */
int attach_tree(int fd, const char *path);
/* Makes the mounts at and below `path` read-only, nosuid and, unless `devices`, nodev. */
int protect_tree(const char *path, int devices);

#endif
