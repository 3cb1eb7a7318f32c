#include "adapter_view.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

json_t *adapter_view(const bc_provider *provider, int stream, const char *text, char *shown,
                     size_t size)
{
    json_t *view = NULL;
    barchan_error err = {0};
    for (size_t step = 0; step < 2; step++) {
        adapter_result r = adapter_read(provider, 200, stream, text, strlen(text), step);
        ck_assert_msg(!r.failed, "%s\n%s", r.err.message, text);
        json_decref(view);
        ck_assert_int_eq(bc_json_view(&view, r.reply, strlen(r.reply), BC_JSON_UNIQUE_KEYS, &err),
                         0);
        if (shown != NULL) snprintf(shown, size, "%.*s", (int)r.shown_len, r.shown);
        adapter_result_clear(&r);
    }
    return view;
}

const char *view_string(const json_t *view, const char *key)
{
    return bc_json_get_string(view, key, NULL);
}
