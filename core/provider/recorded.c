#include "recorded.h"

#include <string.h>
#include "base/limits.h"

static const char *const end_names[] = {"closed", "complete", "failed"};

const char *bc_recorded_end_name(bc_recorded_end end)
{
    return end_names[end];
}

int bc_recorded_end_of(const char *name)
{
    for (int end = 0; name != NULL && end <= BC_RECORDED_FAILED; end++) {
        if (strcmp(end_names[end], name) == 0) return end;
    }
    return -1;
}

void bc_recorded_init(bc_recorded *recorded)
{
    *recorded = (bc_recorded){.retry_after_ms = -1};
    bc_buf_init(&recorded->url, BC_HTTP_MAX_URL_BYTES);
    bc_buf_init(&recorded->request, BC_JSON_MAX_BYTES);
    bc_buf_init(&recorded->body, BC_JSON_MAX_BYTES);
    bc_buf_init(&recorded->pieces, BC_JSON_MAX_BYTES);
}

void bc_recorded_clear(bc_recorded *recorded)
{
    bc_buf_clear(&recorded->url);
    bc_buf_clear(&recorded->request);
    bc_buf_clear(&recorded->body);
    bc_buf_clear(&recorded->pieces);
    json_decref(recorded->headers);
    recorded->headers = NULL;
}

int bc_recorded_add(bc_recorded *recorded, const char *data, size_t len)
{
    uint32_t bytes = (uint32_t)len;
    int rc = bc_buf_append(&recorded->body, data, len);
    return rc < 0 ? rc : bc_buf_append(&recorded->pieces, &bytes, sizeof bytes);
}
