/* A guest that carries a network, as a test plays it, and the world behind the library: one
 * listening socket, which a.example and its address lead to. */
#ifndef FAKE_CARRIER_H
#define FAKE_CARRIER_H

#include <barchan/network.h>
#include "fake_guest.h"

#define STREAM(n) (BC_FRAME_CARRIED + (n))
#define NAME_ADDRESS 0xC6120100u /* what the first name that is asked for gets */

extern int world, world_port;

/* Checked fixtures; and once more with other rules. */
void set_up_network(void);
void tear_down_network(void);
void set_up_with(size_t max_connections, barchan_connect_fn on_connect);

/* What the library says. The next frame that is not the handshake's; type 0: there is none. Its
 * payload stays where it is until the next call. */
bc_frame next_frame(void);
void hear(void); /* gathers it */
void forget_heard(void);
bc_frame hears(uint32_t type, uint32_t stream);
void hears_nothing(void);
void hears_close(uint32_t stream, uint32_t how);

/* What the guest says. */
void say_number(uint32_t type, uint32_t stream, uint32_t number);
void say_connect(uint32_t stream, uint32_t address, uint32_t to);
/* As a stub resolver asks for a.example. */
#define FAKE_QUERY_BYTES 27
extern const unsigned char fake_query[FAKE_QUERY_BYTES];
void say_query(uint32_t stream);
/* Its name is known, on stream `first`, and it is connected to on the next one. */
void connect_named(uint32_t first);

int accept_one(void);
size_t read_world(int fd, char *to, size_t cap);

#endif
