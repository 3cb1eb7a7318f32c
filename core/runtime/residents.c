/* What lives on a runtime and ends with it. */
#include "loop_internal.h"

void bc_resident_add(barchan_runtime *rt, bc_resident *resident, void (*end)(bc_resident *))
{
    resident->rt = rt;
    resident->end = end;
    resident->next = rt->residents.next;
    resident->prev = &rt->residents;
    rt->residents.next->prev = resident;
    rt->residents.next = resident;
}

void bc_resident_remove(bc_resident *resident)
{
    if (resident->next == NULL) return;
    resident->prev->next = resident->next;
    resident->next->prev = resident->prev;
    resident->next = resident->prev = NULL;
}

void bc_runtime_hold(barchan_runtime *rt)
{
    rt->holds++;
}

void bc_runtime_release(barchan_runtime *rt)
{
    rt->holds--;
}

void *bc_runtime_room(barchan_runtime *rt, int room)
{
    return rt->rooms[room].data;
}

void bc_runtime_set_room(barchan_runtime *rt, int room, void *data, void (*end)(void *data))
{
    rt->rooms[room].data = data;
    rt->rooms[room].end = end;
}
