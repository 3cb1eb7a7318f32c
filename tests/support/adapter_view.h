/* Answers that an adapter must be able to read, as views; for libcheck's programs. */
#ifndef TESTS_ADAPTER_VIEW_H
#define TESTS_ADAPTER_VIEW_H

#include "adapter_run.h"

/* The reply to a 200 with this text, read whole and byte by byte; a new reference. What was shown
 * of it is copied to `shown`, which may be NULL. */
json_t *adapter_view(const bc_provider *provider, int stream, const char *text, char *shown,
                     size_t size);
/* A member of it that is a string; NULL: it is none. */
const char *view_string(const json_t *view, const char *key);

#endif
