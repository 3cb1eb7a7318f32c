/* The matcher itself, for pattern.c. */
#ifndef BL_PATTERN_MATCH_H
#define BL_PATTERN_MATCH_H

#include <lua.h>
#include <stddef.h>

/* As in Lua: what a pattern may capture, and how deep it may recurse. */
#define BL_PATTERN_MAX_CAPTURES 32
#define BL_PATTERN_MAX_DEPTH 200

enum { BL_CAPTURE_OPEN = -1, BL_CAPTURE_POSITION = -2 };

typedef struct bl_matcher {
    lua_State *L;
    const char *src, *src_end;
    const char *pat_end;
    size_t steps;
    int depth;
    int level; /* captures so far, finished or not */
    struct {
        const char *start;
        ptrdiff_t len; /* or one of the above */
    } captures[BL_PATTERN_MAX_CAPTURES];
} bl_matcher;

void bl_matcher_init(bl_matcher *m, lua_State *L, const char *src, size_t src_len,
                     const char *pattern, size_t pattern_len);
/* Matches at `s`; returns the end of the match, or NULL. Throws for malformed patterns and when the
 * script's time is over. */
const char *bl_pattern_match(bl_matcher *m, const char *s, const char *p);
/* Pushes capture `index`; the whole match when there are none and index is 0. */
void bl_push_capture(bl_matcher *m, int index, const char *from, const char *to);
/* Pushes all captures (the whole match when there are none and `from` is not NULL); returns how
 * many. */
int bl_push_captures(bl_matcher *m, const char *from, const char *to);

#endif
