/* Shared by the tests of detached sandboxes: holders in processes of their own, and what must not
 * stay behind of them. As root the holders' directory is the machine's; only own ids are looked at.
 */
#ifndef DETACHED_SUPPORT_H
#define DETACHED_SUPPORT_H

#include "sandbox_support.h"

struct holder {
    int pid;
    char id[24];
};

/* Where sockets and locks are: set by use_scratch_directory for an ordinary user. */
extern char held_directory[256];
void use_scratch_directory(void);
void remove_scratch_directory(void);

/* A process that makes a sandbox of this profile and holds it to its end. */
struct holder start_holder(const barchan_profile *profile);
/* Its processes and names are gone, or go within 20 s; reaps it. Gives its wait status. */
int holder_gone(struct holder *holder);
int name_exists(const char *id, const char *ending);
int is_listed(const char *id);
barchan_sandbox *connect_to(const char *id);

/* Checked fixture: a runtime, a holder, and `sbx` connected to it; its end terminates it. */
extern struct holder holder;
void setup_connected(void);
void teardown_connected(void);

#endif
