/*
 * How a test's sandboxes are made and reached. sandbox.cmake says which tests are built for which
 * ways, by the file that has this: path_local.c, as on this machine; path_carried.c, with a network
 * that the channel carries; path_command.c, in a computer that a program leads to.
 */
#ifndef SANDBOX_PATH_H
#define SANDBOX_PATH_H

#include <barchan/barchan.h>

/* As barchan_sandbox_create. */
int create_sandbox(barchan_sandbox **out, barchan_runtime *runtime, const barchan_profile *profile,
                   barchan_error *err);
/* What the library may hold of a connection besides what its relay does. */
extern const int path_kib;

#endif
