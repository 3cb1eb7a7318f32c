/* How the network of a test's sandboxes reaches the library: the tests of networks are built for
 * each way (network_local.c, network_carried.c). */
#ifndef NETWORK_PATH_H
#define NETWORK_PATH_H

#include <barchan/barchan.h>

/* As barchan_sandbox_create. */
int create_with_network(barchan_sandbox **out, barchan_runtime *runtime,
                        const barchan_profile *profile, barchan_error *err);

/* What the library may hold of a connection besides what its relay does. */
extern const int network_path_kib;

#endif
