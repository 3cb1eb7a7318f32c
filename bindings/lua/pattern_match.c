#include "pattern_match.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>
#include "watchdog.h"

#define STEPS_BETWEEN_LOOKS 0x10000u

void bl_matcher_init(bl_matcher *m, lua_State *L, const char *src, size_t src_len,
                     const char *pattern, size_t pattern_len)
{
    m->L = L;
    m->src = src;
    m->src_end = src + src_len;
    m->pat_end = pattern + pattern_len;
    m->steps = 0;
    m->depth = 0;
    m->level = 0;
}

/* A step costs what it looks at. */
static void step(bl_matcher *m, size_t bytes)
{
    m->steps += 1 + bytes;
    if (m->steps < STEPS_BETWEEN_LOOKS) return;
    m->steps = 0;
    bl_watchdog_look(m->L);
}

/* ---- single items: a character, '.', a class, a set ---- */

static const char *set_end(bl_matcher *m, const char *p)
{
    const char *begin = p;
    if (p < m->pat_end && *p == '^') p++;
    do { /* a ']' right at the beginning stands for itself */
        if (p == m->pat_end) luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == '%') {
            if (p == m->pat_end) luaL_error(m->L, "malformed pattern (missing ']')");
            p++;
        }
    } while (p == m->pat_end || *p != ']');
    step(m, (size_t)(p - begin));
    return p + 1;
}

static const char *item_end(bl_matcher *m, const char *p)
{
    char first = *p++;
    if (first == '%') {
        if (p == m->pat_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    return first == '[' ? set_end(m, p) : p;
}

static int in_class(int c, int class)
{
    int is;
    switch (tolower(class)) {
    case 'a': is = isalpha(c); break;
    case 'c': is = iscntrl(c); break;
    case 'd': is = isdigit(c); break;
    case 'g': is = isgraph(c); break;
    case 'l': is = islower(c); break;
    case 'p': is = ispunct(c); break;
    case 's': is = isspace(c); break;
    case 'u': is = isupper(c); break;
    case 'w': is = isalnum(c); break;
    case 'x': is = isxdigit(c); break;
    default: return class == c;
    }
    return isupper(class) ? !is : is != 0;
}

/* `p` is behind the '[', `last` on the ']' that closes. */
static int in_set(int c, const char *p, const char *last)
{
    int found = 1;
    if (*p == '^') {
        found = 0;
        p++;
    }
    for (; p < last; p++) {
        if (*p == '%') {
            p++;
            if (in_class(c, (unsigned char)*p)) return found;
        } else if (p + 2 < last && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return found;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return found;
        }
    }
    return !found;
}

static int item_matches(bl_matcher *m, const char *s, const char *p, const char *end)
{
    step(m, (size_t)(end - p));
    if (s >= m->src_end) return 0;
    int c = (unsigned char)*s;
    switch (*p) {
    case '.': return 1;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[': return in_set(c, p + 1, end - 1);
    default: return (unsigned char)*p == c;
    }
}

/* ---- repetitions ---- */

static const char *match_longest(bl_matcher *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t n = 0;
    while (item_matches(m, s + n, p, end))
        n++;
    for (; n >= 0; n--) {
        step(m, 0);
        const char *rest = bl_pattern_match(m, s + n, end + 1);
        if (rest != NULL) return rest;
    }
    return NULL;
}

static const char *match_shortest(bl_matcher *m, const char *s, const char *p, const char *end)
{
    for (;;) {
        const char *rest = bl_pattern_match(m, s, end + 1);
        if (rest != NULL) return rest;
        if (!item_matches(m, s, p, end)) return NULL;
        s++;
    }
}

/* ---- captures ---- */

static const char *open_capture(bl_matcher *m, const char *s, const char *p, ptrdiff_t kind)
{
    if (m->level >= BL_PATTERN_MAX_CAPTURES) luaL_error(m->L, "too many captures");
    m->captures[m->level].start = s;
    m->captures[m->level++].len = kind;
    const char *rest = bl_pattern_match(m, s, p);
    if (rest == NULL) m->level--;
    return rest;
}

static const char *close_capture(bl_matcher *m, const char *s, const char *p)
{
    int open = m->level - 1;
    while (open >= 0 && m->captures[open].len != BL_CAPTURE_OPEN)
        open--;
    if (open < 0) luaL_error(m->L, "invalid pattern capture");
    m->captures[open].len = s - m->captures[open].start;
    const char *rest = bl_pattern_match(m, s, p);
    if (rest == NULL) m->captures[open].len = BL_CAPTURE_OPEN;
    return rest;
}

static const char *match_reference(bl_matcher *m, const char *s, int digit)
{
    int index = digit - '1';
    if (index < 0 || index >= m->level || m->captures[index].len == BL_CAPTURE_OPEN) {
        luaL_error(m->L, "invalid capture index %%%d", index + 1);
    }
    ptrdiff_t len = m->captures[index].len;
    if (len < 0) return NULL; /* a position: no text to match */
    if (m->src_end - s < len) return NULL;
    step(m, (size_t)len);
    if (memcmp(m->captures[index].start, s, (size_t)len) != 0) return NULL;
    return s + len;
}

/* ---- %b and %f ---- */

static const char *match_balance(bl_matcher *m, const char *s, const char *p)
{
    if (m->pat_end - p < 2) {
        luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    }
    if (s >= m->src_end || *s != *p) return NULL;
    int depth = 1;
    while (++s < m->src_end) {
        step(m, 0);
        if (*s == p[1]) {
            if (--depth == 0) return s + 1;
        } else if (*s == p[0]) {
            depth++;
        }
    }
    return NULL;
}

/* `p` is behind "%f". Sets *after behind its set when the frontier is here. */
static int at_frontier(bl_matcher *m, const char *s, const char *p, const char **after)
{
    if (p == m->pat_end || *p != '[') luaL_error(m->L, "missing '[' after '%%f' in pattern");
    const char *end = item_end(m, p);
    int before = s == m->src ? '\0' : (unsigned char)s[-1];
    int here = s == m->src_end ? '\0' : (unsigned char)*s;
    *after = end;
    step(m, 2 * (size_t)(end - p));
    return !in_set(before, p + 1, end - 1) && in_set(here, p + 1, end - 1);
}

/* ---- the matcher ---- */

/* What begins with '%' and is more than a class. 1: went on (*s, *p moved); 0: no match; -1: a
 * class. */
static int special(bl_matcher *m, const char **s, const char **p)
{
    const char *at = *p + 1;
    if (at == m->pat_end) return -1;
    if (*at == 'f') return at_frontier(m, *s, at + 1, p);
    if (*at == 'b') {
        *s = match_balance(m, *s, at + 1);
        *p = at + 3;
        return *s != NULL;
    }
    if (*at >= '0' && *at <= '9') {
        *s = match_reference(m, *s, *at);
        *p = at + 1;
        return *s != NULL;
    }
    return -1;
}

/* The item at *p with what repeats it. 1: went on; 0: ended, with *s the end of the match or NULL.
 */
static int repeat(bl_matcher *m, const char **s, const char **p)
{
    const char *end = item_end(m, *p);
    char suffix = end < m->pat_end ? *end : '\0';
    if (suffix == '*' || suffix == '-') {
        *s = suffix == '*' ? match_longest(m, *s, *p, end) : match_shortest(m, *s, *p, end);
        return 0;
    }
    int matches = item_matches(m, *s, *p, end);
    if (suffix == '+') {
        *s = matches ? match_longest(m, *s + 1, *p, end) : NULL;
        return 0;
    }
    if (suffix == '?') {
        const char *rest = matches ? bl_pattern_match(m, *s + 1, end + 1) : NULL;
        if (rest != NULL) {
            *s = rest;
            return 0;
        }
        *p = end + 1;
        return 1;
    }
    if (!matches) {
        *s = NULL;
        return 0;
    }
    ++*s;
    *p = end;
    return 1;
}

static const char *match_here(bl_matcher *m, const char *s, const char *p)
{
    while (p < m->pat_end) {
        step(m, 0);
        if (*p == '(') {
            int position = p + 1 < m->pat_end && p[1] == ')';
            return open_capture(m, s, p + 1 + position,
                                position ? BL_CAPTURE_POSITION : BL_CAPTURE_OPEN);
        }
        if (*p == ')') return close_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pat_end) return s == m->src_end ? s : NULL;
        int went_on = *p == '%' ? special(m, &s, &p) : -1;
        if (went_on == 0) return NULL;
        if (went_on < 0 && !repeat(m, &s, &p)) return s;
    }
    return s;
}

const char *bl_pattern_match(bl_matcher *m, const char *s, const char *p)
{
    if (++m->depth > BL_PATTERN_MAX_DEPTH) luaL_error(m->L, "pattern too complex");
    const char *end = match_here(m, s, p);
    m->depth--;
    return end;
}

/* ---- results ---- */

void bl_push_capture(bl_matcher *m, int index, const char *from, const char *to)
{
    if (index >= m->level) {
        if (index != 0) luaL_error(m->L, "invalid capture index %%%d", index + 1);
        lua_pushlstring(m->L, from, (size_t)(to - from));
        return;
    }
    ptrdiff_t len = m->captures[index].len;
    if (len == BL_CAPTURE_OPEN) luaL_error(m->L, "unfinished capture");
    if (len == BL_CAPTURE_POSITION) {
        lua_pushinteger(m->L, m->captures[index].start - m->src + 1);
        return;
    }
    lua_pushlstring(m->L, m->captures[index].start, (size_t)len);
}

int bl_push_captures(bl_matcher *m, const char *from, const char *to)
{
    int count = m->level == 0 && from != NULL ? 1 : m->level;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++) {
        bl_push_capture(m, i, from, to);
    }
    return count;
}
