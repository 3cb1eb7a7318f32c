/* Entries as list, stat and changes report them: records that leave by the worker's output. */
#ifndef GUEST_FILE_LISTING_H
#define GUEST_FILE_LISTING_H

#include "file.h"

struct stat;

struct listing {
    unsigned char buffer[2 * BC_FRAME_MAX_DATA];
    bc_wire_writer out;
    uint32_t count;
    uint32_t change; /* bc_file_change of the entries that follow; 0: none is told */
    bool full;
    size_t written;                          /* bytes of records before those in the buffer */
    char path[BC_FILE_MAX_ENTRY_PATH + 256]; /* of the current entry, below the listed directory */
    struct file_result *result;
};

struct listing *listing_new(struct file_result *result);
/* False, and the result says so, when it holds as many entries as it may. */
bool listing_has_room(struct listing *listing);
/* Puts a name into the path after its first `path_len` bytes; its new length, 0 when it is too
 * long, which the result says. */
size_t listing_name(struct listing *listing, size_t path_len, const char *name);
/* Both: 0, or -1 with the result filled. */
int listing_add(struct listing *listing, int dir, const char *name, const char *path,
                const struct stat *st);
int listing_flush(struct listing *listing);

#endif
