/* The versions of the libraries that the core runs on, for `barchan doctor`. */
#ifndef BC_RUNTIME_VERSIONS_H
#define BC_RUNTIME_VERSIONS_H

#include <stddef.h>

/* The name of the index-th library and its version; NULL after the last one. */
const char *bc_library_version(int index, char *version, size_t size);

#endif
