#include "redactor.h"

#include <stdlib.h>
#include <string.h>
#include "egress/base64.h"
#include "egress/secret_memory.h"

typedef struct pattern {
    const char *bytes; /* in `memory` */
    uint16_t *back;    /* Knuth, Morris, Pratt: how much is left of i bytes that did not go on */
    size_t len;
    unsigned tag;
} pattern;

struct bc_patterns {
    unsigned refs;
    pattern *list;
    size_t count, longest;
    char *memory;
    size_t memory_len;
    uint16_t *backs;
    unsigned char begins[256]; /* a pattern begins with this byte */
};

/* ---- the set ---- */

/* The raw bytes, then three alignments in two alphabets. */
enum { FORMS = 7 };

static size_t write_form(const bc_pattern_source *source, unsigned form, char *to)
{
    if (form > 0) {
        return bc_base64_inside(source->data, source->len, (form - 1) % 3, form > 3, to);
    }
    memcpy(to, source->data, source->len);
    return source->len;
}

static void learn(pattern *p)
{
    size_t k = 0;
    p->back[0] = 0;
    for (size_t i = 1; i < p->len; i++) {
        while (k > 0 && p->bytes[i] != p->bytes[k])
            k = p->back[k - 1];
        if (p->bytes[i] == p->bytes[k]) k++;
        p->back[i] = (uint16_t)k;
    }
}

static int is_known(const bc_patterns *patterns, const char *bytes, size_t len)
{
    for (size_t i = 0; i < patterns->count; i++) {
        const pattern *p = &patterns->list[i];
        if (p->len == len && memcmp(p->bytes, bytes, len) == 0) return 1;
    }
    return 0;
}

static void add_source(bc_patterns *patterns, const bc_pattern_source *source, size_t *used)
{
    unsigned forms = source->base64 ? FORMS : 1;
    for (unsigned form = 0; source->len > 0 && form < forms; form++) {
        char *to = patterns->memory + *used;
        size_t len = write_form(source, form, to);
        if (len == 0 || is_known(patterns, to, len)) continue;
        pattern *p = &patterns->list[patterns->count++];
        *p =
            (pattern){.bytes = to, .back = patterns->backs + *used, .len = len, .tag = source->tag};
        learn(p);
        patterns->begins[(unsigned char)to[0]] = 1;
        if (len > patterns->longest) patterns->longest = len;
        *used += len;
    }
}

bc_patterns *bc_patterns_create(const bc_pattern_source *sources, size_t count)
{
    bc_patterns *patterns = calloc(1, sizeof *patterns);
    if (patterns == NULL) return NULL;
    patterns->refs = 1;
    for (size_t i = 0; i < count; i++)
        patterns->memory_len += sources[i].len + 6 * (BC_BASE64_LENGTH(sources[i].len) + 4);
    patterns->memory = bc_secret_alloc(patterns->memory_len);
    patterns->list = calloc(count * FORMS + 1, sizeof *patterns->list);
    patterns->backs = calloc(patterns->memory_len + 1, sizeof *patterns->backs);
    if (patterns->memory == NULL || patterns->list == NULL || patterns->backs == NULL) {
        bc_patterns_unref(patterns);
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        add_source(patterns, &sources[i], &used);
    return patterns;
}

bc_patterns *bc_patterns_ref(bc_patterns *patterns)
{
    patterns->refs++;
    return patterns;
}

void bc_patterns_unref(bc_patterns *patterns)
{
    if (patterns == NULL || --patterns->refs > 0) return;
    bc_secret_free(patterns->memory, patterns->memory_len);
    free(patterns->list);
    free(patterns->backs);
    free(patterns);
}

/* ---- a stream ---- */

int bc_redactor_init(bc_redactor *redactor, bc_patterns *patterns)
{
    *redactor = (bc_redactor){.patterns = bc_patterns_ref(patterns)};
    redactor->states = calloc(patterns->count + 1, sizeof *redactor->states);
    redactor->held = bc_secret_alloc(patterns->longest);
    if (redactor->states != NULL && redactor->held != NULL) return 0;
    bc_redactor_clear(redactor);
    return BARCHAN_ENOMEM;
}

void bc_redactor_clear(bc_redactor *redactor)
{
    if (redactor->patterns == NULL) return;
    free(redactor->states);
    bc_secret_free(redactor->held, redactor->patterns->longest);
    bc_patterns_unref(redactor->patterns);
    *redactor = (bc_redactor){.patterns = NULL};
}

/* Takes one byte in; how many of the last bytes are to be masked. */
static size_t step(bc_redactor *redactor, unsigned char c)
{
    const bc_patterns *patterns = redactor->patterns;
    size_t mask = 0;
    if (redactor->active == 0 && !patterns->begins[c]) return 0;
    redactor->active = 0;
    for (size_t i = 0; i < patterns->count; i++) {
        const pattern *p = &patterns->list[i];
        size_t k = redactor->states[i];
        while (k > 0 && (unsigned char)p->bytes[k] != c)
            k = p->back[k - 1];
        if ((unsigned char)p->bytes[k] == c) k++;
        if (k == p->len) {
            if (k > mask) mask = k;
            redactor->hits |= 1u << p->tag;
            k = p->back[k - 1];
        }
        redactor->states[i] = (uint16_t)k;
        redactor->active += k > 0;
    }
    return mask;
}

static size_t longest_begun(const bc_redactor *redactor)
{
    size_t most = 0;
    if (redactor->active == 0) return 0;
    for (size_t i = 0; i < redactor->patterns->count; i++) {
        if (redactor->states[i] > most) most = redactor->states[i];
    }
    return most;
}

int bc_redactor_feed(bc_redactor *redactor, const char *data, size_t len, bc_buf *out)
{
    size_t held = redactor->held_len, all = held + len;
    char *to = bc_buf_reserve(out, all);
    if (to == NULL) return BARCHAN_ENOMEM;
    memcpy(to, redactor->held, held);
    if (len > 0) memcpy(to + held, data, len);
    for (size_t i = held; i < all; i++) {
        size_t mask = step(redactor, (unsigned char)to[i]);
        /* A pattern that has begun is held back, so all of it is here. */
        if (mask > 0) memset(to + i + 1 - mask, '*', mask);
    }
    size_t keep = longest_begun(redactor);
    memcpy(redactor->held, to + all - keep, keep);
    bc_secret_wipe(to + all - keep, keep);
    redactor->held_len = keep;
    bc_buf_commit(out, all - keep);
    return 0;
}

int bc_redactor_end(bc_redactor *redactor, bc_buf *out)
{
    int rc = bc_buf_append(out, redactor->held, redactor->held_len);
    bc_redactor_forget(redactor);
    return rc;
}

void bc_redactor_forget(bc_redactor *redactor)
{
    bc_secret_wipe(redactor->held, redactor->held_len);
    redactor->held_len = redactor->active = 0;
    memset(redactor->states, 0, redactor->patterns->count * sizeof *redactor->states);
}

void bc_redactor_look(bc_redactor *redactor, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        step(redactor, (unsigned char)data[i]);
}
