#include "egress/names.h"

#include <stdlib.h>
#include <string.h>
#include "channel/frame.h"

#define BUCKETS 1024u
/* The first 256 addresses are for the name service and what may follow it. */
#define FIRST (BC_NETWORK_NAMES + 256u)
#define NONE UINT16_MAX

struct name {
    char *text; /* NULL: never used */
    unsigned users;
    uint16_t next; /* of its bucket */
};

struct bc_names {
    struct name *of;
    size_t capacity;
    uint16_t count;  /* places that have been used */
    uint16_t oldest; /* where to look for one to give up */
    uint16_t buckets[BUCKETS];
};

/* FNV-1a: who fills one bucket slows down a sandbox of at most BC_NAMES_MAX names, its own. */
static unsigned bucket_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash % BUCKETS;
}

bc_names *bc_names_create(void)
{
    bc_names *names = calloc(1, sizeof *names);
    if (names == NULL) return NULL;
    memset(names->buckets, 0xFF, sizeof names->buckets);
    return names;
}

void bc_names_destroy(bc_names *names)
{
    if (names == NULL) return;
    for (uint16_t i = 0; i < names->count; i++) {
        free(names->of[i].text);
    }
    free(names->of);
    free(names);
}

static int grow(bc_names *names)
{
    if (names->count < names->capacity) return 0;
    size_t capacity = names->capacity == 0 ? 16 : names->capacity * 2;
    struct name *of = realloc(names->of, capacity * sizeof *of);
    if (of == NULL) return -1;
    names->of = of;
    names->capacity = capacity;
    return 0;
}

static void unlink_name(bc_names *names, uint16_t at)
{
    uint16_t *link = &names->buckets[bucket_of(names->of[at].text)];
    while (*link != at) {
        link = &names->of[*link].next;
    }
    *link = names->of[at].next;
}

/* A place without a name; NONE: there is none. */
static uint16_t free_place(bc_names *names)
{
    if (names->count < BC_NAMES_MAX) {
        if (grow(names) < 0) return NONE;
        names->of[names->count] = (struct name){0};
        return names->count++;
    }
    for (unsigned tried = 0; tried < BC_NAMES_MAX; tried++) {
        uint16_t at = names->oldest;
        names->oldest = (uint16_t)((at + 1u) % BC_NAMES_MAX);
        if (names->of[at].users > 0) continue;
        unlink_name(names, at);
        free(names->of[at].text);
        names->of[at].text = NULL;
        return at;
    }
    return NONE;
}

uint32_t bc_names_address(bc_names *names, const char *name)
{
    uint16_t *bucket = &names->buckets[bucket_of(name)];
    for (uint16_t at = *bucket; at != NONE; at = names->of[at].next) {
        if (strcmp(names->of[at].text, name) == 0) return FIRST + at;
    }
    char *text = strdup(name);
    uint16_t at = text == NULL ? NONE : free_place(names);
    if (at == NONE) {
        free(text);
        return 0;
    }
    names->of[at] = (struct name){.text = text, .next = *bucket};
    *bucket = at;
    return FIRST + at;
}

static struct name *place_of(const bc_names *names, uint32_t address)
{
    if (address < FIRST || address - FIRST >= names->count) return NULL;
    struct name *name = &names->of[address - FIRST];
    return name->text == NULL ? NULL : name;
}

const char *bc_names_find(const bc_names *names, uint32_t address)
{
    const struct name *name = place_of(names, address);
    return name == NULL ? NULL : name->text;
}

void bc_names_hold(bc_names *names, uint32_t address)
{
    struct name *name = place_of(names, address);
    if (name != NULL) name->users++;
}

void bc_names_release(bc_names *names, uint32_t address)
{
    struct name *name = place_of(names, address);
    if (name != NULL && name->users > 0) name->users--;
}
