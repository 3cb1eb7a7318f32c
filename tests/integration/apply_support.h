/* A sandbox with a copy-on-write mount of a folder with files, for the tests of applying changes.
 */
#ifndef APPLY_SUPPORT_H
#define APPLY_SUPPORT_H

#include "host_dir.h"
#include "sandbox_support.h"

#define COW BARCHAN_MOUNT_COPY_ON_WRITE
#define APPLY(...) \
    (&(barchan_apply_options){.struct_size = sizeof(barchan_apply_options), __VA_ARGS__})

extern barchan_apply_result result;
extern barchan_error err;

void begin_apply(void);
void nothing_temporary(void);
void end_apply(void);
int apply(const char *dest, const barchan_apply_options *options);
void applies(const char *dest, const barchan_apply_options *options, size_t done);
void refuses(const char *dest, const barchan_apply_options *options, int code, const char *words);

#endif
