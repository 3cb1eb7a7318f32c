#include "redactor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "egress/base64.h"
#include "egress/secret_memory.h"

enum {
    WINDOW = 16,  /* each form of a secret's value has as many bytes */
    PIECE = 1024, /* bytes that are searched at once */
    FILTER_BITS = 16,
};

typedef struct pattern {
    const char *bytes; /* in `memory` */
    size_t len;
    uint64_t hash; /* of its last `window` bytes */
    unsigned tag;
} pattern;

/* What a window hashes to is known to nobody: how long a search takes tells nothing of the values,
 * and no text can be written that takes long. */
struct bc_patterns {
    unsigned refs;
    bool secret;
    pattern *list;
    size_t count, longest;
    size_t window; /* WINDOW, or what the shortest pattern has */
    char *memory;
    size_t memory_len;
    uint64_t base;                             /* the hash is a polynomial in this, modulo 2^64 */
    uint64_t leaving;                          /* base to the power of window - 1 */
    uint64_t filter[(1u << FILTER_BITS) / 64]; /* of hashes that some pattern has */
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
        *p = (pattern){.bytes = to, .len = len, .tag = source->tag};
        if (len > patterns->longest) patterns->longest = len;
        if (len < patterns->window) patterns->window = len;
        *used += len;
    }
}

static uint64_t hash(const bc_patterns *patterns, const char *bytes, size_t len)
{
    uint64_t h = 0;
    for (size_t i = 0; i < len; i++)
        h = h * patterns->base + (unsigned char)bytes[i];
    return h;
}

static uint64_t filter_bit(uint64_t h)
{
    return (h * 0x9e3779b97f4a7c15u) >> (64 - FILTER_BITS);
}

static int learn(bc_patterns *patterns)
{
    size_t window = patterns->window;
    if (getrandom(&patterns->base, sizeof patterns->base, 0) != (ssize_t)sizeof patterns->base)
        return -1;
    patterns->base |= 1;
    patterns->leaving = 1;
    for (size_t i = 1; i < window; i++)
        patterns->leaving *= patterns->base;
    for (size_t i = 0; i < patterns->count; i++) {
        pattern *p = &patterns->list[i];
        p->hash = hash(patterns, p->bytes + p->len - window, window);
        uint64_t bit = filter_bit(p->hash);
        patterns->filter[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return 0;
}

static void *reserve(const bc_patterns *patterns, size_t len)
{
    return patterns->secret ? bc_secret_alloc(len) : calloc(1, len + 1);
}

static void release(const bc_patterns *patterns, void *memory, size_t len)
{
    if (patterns->secret)
        bc_secret_free(memory, len);
    else
        free(memory);
}

bc_patterns *bc_patterns_create(const bc_pattern_source *sources, size_t count, bool secret)
{
    bc_patterns *patterns = calloc(1, sizeof *patterns);
    if (patterns == NULL) return NULL;
    patterns->refs = 1;
    patterns->secret = secret;
    patterns->window = WINDOW;
    for (size_t i = 0; i < count; i++)
        patterns->memory_len += sources[i].len + 6 * (BC_BASE64_LENGTH(sources[i].len) + 4);
    patterns->memory = reserve(patterns, patterns->memory_len);
    patterns->list = calloc(count * FORMS + 1, sizeof *patterns->list);
    size_t used = 0;
    for (size_t i = 0; patterns->memory != NULL && patterns->list != NULL && i < count; i++)
        add_source(patterns, &sources[i], &used);
    if (patterns->memory == NULL || patterns->list == NULL || learn(patterns) < 0) {
        bc_patterns_unref(patterns);
        return NULL;
    }
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
    release(patterns, patterns->memory, patterns->memory_len);
    free(patterns->list);
    free(patterns);
}

/* ---- a stream ---- */

static size_t room(const bc_redactor *redactor)
{
    return redactor->patterns->longest + PIECE;
}

int bc_redactor_init(bc_redactor *redactor, bc_patterns *patterns)
{
    *redactor = (bc_redactor){.patterns = bc_patterns_ref(patterns)};
    redactor->bytes = reserve(patterns, 2 * room(redactor));
    if (redactor->bytes == NULL) {
        bc_redactor_clear(redactor);
        return BARCHAN_ENOMEM;
    }
    redactor->stars = redactor->bytes + room(redactor);
    return 0;
}

void bc_redactor_clear(bc_redactor *redactor)
{
    if (redactor->patterns == NULL) return;
    release(redactor->patterns, redactor->bytes, 2 * room(redactor));
    bc_patterns_unref(redactor->patterns);
    *redactor = (bc_redactor){.patterns = NULL};
}

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* `run` printable bytes end before `end`: marks those of them that are a pattern at their end. */
static void mark(bc_redactor *redactor, size_t end, size_t run, uint64_t h)
{
    const bc_patterns *patterns = redactor->patterns;
    for (size_t i = 0; i < patterns->count; i++) {
        const pattern *p = &patterns->list[i];
        if (p->hash != h || p->len > run) continue;
        if (!bc_secret_equal(p->bytes, redactor->bytes + end - p->len, p->len)) continue;
        memset(redactor->stars + end - p->len, 1, p->len);
        redactor->hits |= 1u << p->tag;
    }
}

/* Looks at `len` further bytes. How many printable ones are there at the end. */
static size_t search(bc_redactor *redactor, size_t len)
{
    const bc_patterns *patterns = redactor->patterns;
    const char *bytes = redactor->bytes;
    size_t run = redactor->held_len; /* printable bytes before this one */
    size_t in = run < patterns->window ? run : patterns->window - 1; /* of them in the window */
    uint64_t h = hash(patterns, bytes + run - in, in);
    for (size_t i = run, all = run + len; i < all; i++) {
        if (!is_printable(bytes[i])) {
            run = in = 0;
            h = 0;
            continue;
        }
        run++;
        if (in < patterns->window)
            in++;
        else
            h -= patterns->leaving * (unsigned char)bytes[i - in];
        h = h * patterns->base + (unsigned char)bytes[i];
        uint64_t bit = filter_bit(h);
        if (in == patterns->window && (patterns->filter[bit / 64] >> bit % 64 & 1) != 0) {
            mark(redactor, i + 1, run, h);
        }
    }
    return run;
}

/* Takes at most a piece in, and writes what may pass. `to` has room for what is held and that. */
static size_t take(bc_redactor *redactor, const char *data, size_t len, char *to)
{
    size_t all = redactor->held_len + len, longest = redactor->patterns->longest;
    memcpy(redactor->bytes + redactor->held_len, data, len);
    memset(redactor->stars + redactor->held_len, 0, len);
    size_t run = search(redactor, len);
    size_t most = longest > 0 ? longest - 1 : 0, keep = run < most ? run : most;
    size_t done = all - keep;
    for (size_t i = 0; to != NULL && i < done; i++)
        to[i] = redactor->stars[i] ? '*' : redactor->bytes[i];
    memmove(redactor->bytes, redactor->bytes + done, keep);
    memmove(redactor->stars, redactor->stars + done, keep);
    bc_secret_wipe(redactor->bytes + keep, done);
    redactor->held_len = keep;
    return done;
}

int bc_redactor_feed(bc_redactor *redactor, const char *data, size_t len, bc_buf *out)
{
    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        char *to = bc_buf_reserve(out, redactor->held_len + n);
        if (to == NULL) return BARCHAN_ENOMEM;
        bc_buf_commit(out, take(redactor, data, n, to));
        data += n;
        len -= n;
    }
    return 0;
}

int bc_redactor_end(bc_redactor *redactor, bc_buf *out)
{
    size_t held = redactor->held_len;
    char *to = bc_buf_reserve(out, held + 1);
    if (to == NULL) return BARCHAN_ENOMEM;
    for (size_t i = 0; i < held; i++)
        to[i] = redactor->stars[i] ? '*' : redactor->bytes[i];
    bc_buf_commit(out, held);
    bc_redactor_forget(redactor);
    return 0;
}

/* More than the new set needs passes: it was searched for all that the old one had. */
static int let_surplus_pass(bc_redactor *redactor, size_t most, bc_buf *out)
{
    size_t surplus = redactor->held_len > most ? redactor->held_len - most : 0;
    char *to = bc_buf_reserve(out, surplus + 1);
    if (to == NULL) return BARCHAN_ENOMEM;
    for (size_t i = 0; i < surplus; i++)
        to[i] = redactor->stars[i] ? '*' : redactor->bytes[i];
    bc_buf_commit(out, surplus);
    memmove(redactor->bytes, redactor->bytes + surplus, redactor->held_len - surplus);
    memmove(redactor->stars, redactor->stars + surplus, redactor->held_len - surplus);
    redactor->held_len -= surplus;
    return 0;
}

int bc_redactor_change(bc_redactor *redactor, bc_patterns *patterns, bc_buf *out)
{
    bc_redactor changed;
    size_t most = patterns->longest > 0 ? patterns->longest - 1 : 0;
    int rc = bc_redactor_init(&changed, patterns);
    if (rc < 0) return rc;
    rc = let_surplus_pass(redactor, most, out);
    if (rc < 0) {
        bc_redactor_clear(&changed);
        return rc;
    }
    memcpy(changed.bytes, redactor->bytes, redactor->held_len);
    memcpy(changed.stars, redactor->stars, redactor->held_len);
    changed.held_len = redactor->held_len;
    changed.hits = redactor->hits;
    bc_redactor_clear(redactor);
    *redactor = changed;
    return 0;
}

void bc_redactor_forget(bc_redactor *redactor)
{
    bc_secret_wipe(redactor->bytes, redactor->held_len);
    redactor->held_len = 0;
}

void bc_redactor_look(bc_redactor *redactor, const char *data, size_t len)
{
    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        take(redactor, data, n, NULL);
        data += n;
        len -= n;
    }
}
