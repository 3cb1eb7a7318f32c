/* For LD_PRELOAD: an aggressive collector in every Lua state of a program. The collector takes a
 * step at each allocation, finalizers included, and every few objects one is refused at first, for
 * which Lua collects in full. Only objects: for the buffers of its library Lua does not try twice.
 */
#include <dlfcn.h>
#include <lua.h>
#include <stdlib.h>

/* A state that is just being made cannot collect. */
enum { FIRST = 500, REFUSE_EVERY = 50 };

struct heap {
    struct heap *next;
    lua_Alloc alloc;
    void *ud;
    unsigned long objects;
    int refused;
};

static void *stressed(void *ud, void *ptr, size_t old_size, size_t new_size)
{
    struct heap *heap = ud;
    if (ptr == NULL && old_size != 0) { /* then it is the type of a new object */
        if (!heap->refused && ++heap->objects > FIRST && heap->objects % REFUSE_EVERY == 0) {
            heap->refused = 1;
            return NULL;
        }
        heap->refused = 0;
    }
    return heap->alloc(heap->ud, ptr, old_size, new_size);
}

LUA_API lua_State *lua_newstate(lua_Alloc alloc, void *ud)
{
    lua_State *(*real)(lua_Alloc, void *) =
        (lua_State * (*)(lua_Alloc, void *)) dlsym(RTLD_NEXT, "lua_newstate");
    static struct heap *heaps; /* for as long as the program runs, and seen by leak checkers */
    struct heap *heap = calloc(1, sizeof *heap);
    if (real == NULL || heap == NULL) return NULL;
    heap->next = __atomic_exchange_n(&heaps, heap, __ATOMIC_RELAXED);
    heap->alloc = alloc;
    heap->ud = ud;
    lua_State *L = real(stressed, heap);
    if (L != NULL) lua_gc(L, LUA_GCINC, 1, 1000, 1);
    return L;
}
