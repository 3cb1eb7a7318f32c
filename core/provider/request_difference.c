/* Where two request bodies differ, for a person: the place, what was recorded and what is sent. */
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/utf8.h"
#include "recorded.h"

enum { SHOWN = 60, MAX_PLACE = 160 };

struct place {
    char text[MAX_PLACE];
    size_t len;
};

static size_t add_step(struct place *place, const char *key, size_t index)
{
    size_t before = place->len;
    char step[72];
    if (key != NULL)
        snprintf(step, sizeof step, "/%.*s", (int)bc_utf8_whole(key, strnlen(key, 64)), key);
    else
        snprintf(step, sizeof step, "/%zu", index);
    size_t len = strlen(step);
    if (before + len < MAX_PLACE) {
        memcpy(place->text + before, step, len + 1);
        place->len += len;
    }
    return before;
}

static void leave(struct place *place, size_t before)
{
    place->len = before;
    place->text[before] = '\0';
}

/* A value in few words; of a string what stands around `at`. */
static void show(const json_t *value, size_t at, char *to, size_t size)
{
    if (value == NULL) {
        snprintf(to, size, "nothing");
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        size_t len = json_string_length(value), from = at > SHOWN / 3 ? at - SHOWN / 3 : 0;
        while (from > 0 && ((unsigned char)text[from] & 0xC0) == 0x80)
            from--;
        size_t shown = len - from < SHOWN ? len - from : bc_utf8_whole(text + from, SHOWN);
        snprintf(to, size, "%s\"%.*s\"%s", from > 0 ? "…" : "", (int)shown, text + from,
                 from + shown < len ? "…" : "");
    } else if (json_is_object(value) || json_is_array(value)) {
        int object = json_is_object(value);
        snprintf(to, size, "%s of %zu", object ? "an object" : "a list",
                 object ? json_object_size(value) : json_array_size(value));
    } else if (json_is_integer(value)) {
        snprintf(to, size, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(to, size, "%g", json_real_value(value));
    } else {
        snprintf(to, size, "%s",
                 json_is_null(value)   ? "null"
                 : json_is_true(value) ? "true"
                                       : "false");
    }
}

static size_t common(const json_t *a, const json_t *b)
{
    size_t at = 0;
    if (!json_is_string(a) || !json_is_string(b)) return 0;
    const char *left = json_string_value(a), *right = json_string_value(b);
    while (at < json_string_length(a) && at < json_string_length(b) && left[at] == right[at])
        at++;
    return at;
}

static int tell(const struct place *place, const json_t *recorded, const json_t *now, char *words,
                size_t size)
{
    char before[SHOWN + 24], after[SHOWN + 24];
    size_t at = common(recorded, now);
    show(recorded, at, before, sizeof before);
    show(now, at, after, sizeof after);
    char line[MAX_PLACE + sizeof before + sizeof after + 64];
    snprintf(line, sizeof line, "at %s recorded was %s, now it is %s",
             place->len > 0 ? place->text : "the top", before, after);
    bc_secret_line(NULL, words, size, line, strlen(line)); /* whole characters, none of control */
    return 1;
}

static int differ(struct place *place, const json_t *recorded, const json_t *now, char *words,
                  size_t size);

static int differ_objects(struct place *place, const json_t *recorded, const json_t *now,
                          char *words, size_t size)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recorded, key, value)
    {
        size_t before = add_step(place, key, 0);
        if (differ(place, value, json_object_get(now, key), words, size)) return 1;
        leave(place, before);
    }
    json_object_foreach((json_t *)now, key, value)
    {
        if (json_object_get(recorded, key) != NULL) continue;
        add_step(place, key, 0);
        return tell(place, NULL, value, words, size);
    }
    return 0;
}

static int differ_lists(struct place *place, const json_t *recorded, const json_t *now, char *words,
                        size_t size)
{
    size_t count = json_array_size(recorded), other = json_array_size(now);
    for (size_t i = 0; i < count || i < other; i++) {
        size_t before = add_step(place, NULL, i);
        if (differ(place, json_array_get(recorded, i), json_array_get(now, i), words, size))
            return 1;
        leave(place, before);
    }
    return 0;
}

static int differ(struct place *place, const json_t *recorded, const json_t *now, char *words,
                  size_t size)
{
    if (json_equal(recorded, now)) return 0;
    if (json_is_object(recorded) && json_is_object(now))
        return differ_objects(place, recorded, now, words, size);
    if (json_is_array(recorded) && json_is_array(now))
        return differ_lists(place, recorded, now, words, size);
    return tell(place, recorded, now, words, size);
}

int bc_request_differs(bc_json_span recorded, bc_json_span now, char *words, size_t size)
{
    cleanup_json json_t *before = NULL;
    cleanup_json json_t *after = NULL;
    struct place place = {.len = 0};
    if (bc_json_view(&before, recorded.data, recorded.len, 0, NULL) < 0 ||
        bc_json_view(&after, now.data, now.len, 0, NULL) < 0) {
        snprintf(words, size, "one of them is no JSON");
        return 1;
    }
    return differ(&place, before, after, words, size);
}
