/* What lib_util.c offers to the other bindings. */
#ifndef BL_UTIL_H
#define BL_UTIL_H

/* The value of an environment variable whose name ends so; NULL when it is empty, unset or has
 * another name. */
const char *bl_getenv(const char *name, const char *ending);

#endif
