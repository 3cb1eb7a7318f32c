/* A folder of the host for tests that show it, or write to it. */
#ifndef HOST_DIR_H
#define HOST_DIR_H

#include <barchan/barchan.h>
#include <sys/types.h>

/* As root what is in it is another user's: what is root's is not given away. */
#define OWNER 12345

/* Around each test. */
void host_dir_make(void);
void host_dir_remove(void);

/* The path of a name in it; it holds for the next 63. */
const char *at(const char *name);
/* To OWNER, as root. */
void give(const char *path);
void put(const char *name, const char *text, mode_t mode);
void folder(const char *name, mode_t mode);
/* The file has this text; NULL: there is nothing of this name. */
void host_has(const char *name, const char *text);

/* Whether this kernel has what copy-on-write mounts need; says so when not. */
int copies_work(void);

/* A sandbox with these mounts in the place of `sbx`; `shows` when it must succeed. */
int create_with(const barchan_mount *mounts, size_t count, barchan_error *err);
void shows(const barchan_mount *mounts, size_t count);

#endif
