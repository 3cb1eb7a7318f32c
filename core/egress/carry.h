/*
 * Connections that the guest has accepted (channel/carried.h). For each there is a pair of sockets:
 * the relay has one end and need not know that it is no connection of TCP, this passes bytes
 * between the other and the channel. The guest is hostile: whatever it says that does not fit is a
 * breach, and it can make us hold no more than BC_FRAME_NET_WINDOW for a connection.
 */
#ifndef BC_EGRESS_CARRY_H
#define BC_EGRESS_CARRY_H

#include "egress/internal.h"

/* relay.c: the relay has one end of the pair; it has closed it, at once or with what it has written
 * still to go. */
void bc_carried_begin(bc_carried *carried, bc_relay *relay);
void bc_carried_left(bc_carried *carried, int at_once);
/* There may be room for those that wait for a relay. */
void bc_carry_accept(bc_egress *egress);
/* All connections end here; nothing is said to the guest. */
void bc_carry_stop(bc_egress *egress);
/* Frees those that are over. */
void bc_carry_bury(bc_egress *egress);

#endif
