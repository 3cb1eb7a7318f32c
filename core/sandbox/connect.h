/* A sandbox that another process holds: the connection to its holder as a backend. */
#ifndef BC_SANDBOX_CONNECT_H
#define BC_SANDBOX_CONNECT_H

#include "backend.h"

struct bc_connection;

extern const bc_backend bc_backend_held;

/* NULL is ignored. */
void bc_connection_free(struct bc_connection *connection);

#endif
