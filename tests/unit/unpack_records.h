/* A guest's stream of files, record by record, and the folder that it is unpacked into. */
#ifndef UNPACK_RECORDS_H
#define UNPACK_RECORDS_H

#include "channel/frame.h"
#include "sandbox/unpack.h"

extern unsigned char bytes[1 << 20];
extern bc_wire_writer out; /* of `bytes` */
extern bc_unpack_limits limits;
extern uint64_t entries, data_bytes; /* what has been written */
extern int outside, root;            /* root is in outside */

void begin_tree(void);
int count_in(int fd);
void put_name(const char *name);
void end_tree(void);
void put_time(int64_t s, uint32_t ns);
void folder(const char *name, unsigned mode);
void leave(void);
void file_head(const char *name, unsigned mode, uint64_t size, uint32_t id);
void extent(const void *data, uint32_t len);
void file(const char *name, const char *text, uint32_t id);
void link_to(const char *name, const char *target);
void again(uint32_t id, const char *name);
void done(void);
int unpack(size_t piece, barchan_error *err);
void refused(int code);
void reads(const char *path, const char *text);

#endif
