/* A file operation, done by a process of its own under the command's user. */
#ifndef GUEST_FILE_H
#define GUEST_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "channel/frame.h"

struct file_request {
    uint32_t op, flags, mode, depth;
    uint64_t offset, limit;
    const char *path, *new_path;
    uint32_t hidden_places; /* pack: bits of those that a mount of the profile is shown at */
    int layers[3]; /* changes: of the mount at `path`: lower, upper, merged; -1: it has none */
};

/* The worker's descriptors; the last three for changes of a mount only. */
enum {
    FILE_IN_FD = 0,
    FILE_OUT_FD = 1,
    FILE_RESULT_FD = 2,
    FILE_LOWER_FD = 3,
    FILE_UPPER_FD = 4,
    FILE_MERGED_FD = 5
};

struct file_result {
    uint32_t status, os_error;
    uint64_t bytes, size;
    uint32_t truncated;
    const char *words; /* what went wrong; NULL: the system's words for os_error */
};

void file_encode_result(bc_wire_writer *out, const struct file_result *result);

/* Failing is filling the result; both return -1. */
int file_fail_os(struct file_result *result, int os_error);
int file_fail(struct file_result *result, uint32_t status, const char *words);
/* For something that is no regular file: says what it is. */
int file_fail_type(struct file_result *result, unsigned mode);
int file_write_all(int fd, const void *data, size_t len);
/* Creates the missing parents of a path. */
int file_make_parents(const char *path, struct file_result *result);

/* file_worker.c: runs in the worker; never returns. */
_Noreturn void file_worker(const struct file_request *request, bool change_user);
/* file_write.c */
int file_write(const struct file_request *request, struct file_result *result);
int file_append(const struct file_request *request, struct file_result *result);
/* file_tree.c */
int file_list(const struct file_request *request, struct file_result *result);
int file_stat(const struct file_request *request, struct file_result *result);
int file_mkdir(const struct file_request *request, struct file_result *result);
int file_rename(const struct file_request *request, struct file_result *result);
/* file_changes.c */
int file_changes(const struct file_request *request, struct file_result *result);
/* file_pack.c */
int file_pack(const struct file_request *request, struct file_result *result);
/* file_remove.c */
int file_remove(const struct file_request *request, struct file_result *result);

#endif
