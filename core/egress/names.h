/* Addresses that stand for names inside one sandbox. */
#ifndef BC_EGRESS_NAMES_H
#define BC_EGRESS_NAMES_H

#include <stdint.h>
#include "egress/host_name.h"

/* Names of one sandbox at a time. More than that evict the oldest that no connection uses; a
 * program that has looked one up has long connected. */
#define BC_NAMES_MAX 4096u

typedef struct bc_names bc_names;

bc_names *bc_names_create(void); /* NULL: out of memory */
void bc_names_destroy(bc_names *names);
/* The address (host byte order) of a canonical name, a new one if need be; 0: out of memory, or
 * every name is in use. */
uint32_t bc_names_address(bc_names *names, const char *name);
/* The name behind an address; NULL: none. Borrowed until the next bc_names_address. */
const char *bc_names_find(const bc_names *names, uint32_t address);
/* While a connection uses the address, it keeps its name. */
void bc_names_hold(bc_names *names, uint32_t address);
void bc_names_release(bc_names *names, uint32_t address);

#endif
