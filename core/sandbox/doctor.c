/* barchan_doctor: looks at the host, then tries what really counts: a sandbox. */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>
#include "base/json_scan.h"
#include "base/json_write.h"
#include "internal.h"
#include "launcher.h"

#define MAX_REPORT (64u << 10)

void bc_doctor_add(bc_buf *json, const char *name, const char *state, const char *detail,
                   const char *remedy)
{
    const char *const fields[][2] = {
        {"name", name}, {"state", state}, {"detail", detail}, {"remedy", remedy}};
    bc_buf_append_string(json, json->len > 1 ? ",{" : "{");
    for (size_t i = 0; i < 4; i++) {
        if (i > 0) bc_buf_append_char(json, ',');
        bc_json_write_string(json, fields[i][0], strlen(fields[i][0]));
        bc_buf_append_char(json, ':');
        bc_json_write_string(json, fields[i][1], strlen(fields[i][1]));
    }
    bc_buf_append_char(json, '}');
}

/* The layers that the sandbox reported, one entry each. */
static void add_layers(bc_buf *json, const char *layers)
{
    bc_json_scan scan;
    bc_buf name cleanup_buf, how cleanup_buf;
    bc_buf_init(&name, 256);
    bc_buf_init(&how, 512);
    bc_json_scan_init(&scan, layers, strlen(layers));
    while (bc_json_scan_next(&scan, NULL) > BC_JSON_DONE) {
        if (scan.token == BC_JSON_KEY) {
            bc_buf_reset(&name);
            bc_buf_append_string(&name, "sandbox.");
            bc_json_scan_text(&scan, &name);
        } else if (scan.token == BC_JSON_STRING) {
            bc_buf_reset(&how);
            bc_json_scan_text(&scan, &how);
            const char *detail = bc_buf_data(&how);
            int missing = strncmp(detail, "missing: ", 9) == 0;
            bc_doctor_add(json, bc_buf_data(&name), missing ? "missing" : "ok",
                          missing ? detail + 9 : detail,
                          missing ? "sandboxes without it need best_effort" : "");
        }
    }
}

static void try_sandbox(bc_buf *json, barchan_runtime *rt)
{
    barchan_error err;
    barchan_sandbox *sbx;
    const barchan_profile profile = {.struct_size = sizeof profile, .best_effort = 1};
    if (barchan_sandbox_create(&sbx, rt, &profile, &err) < 0) {
        bc_doctor_add(json, "sandbox", "missing", err.message,
                      "see the entries above for what is missing");
        return;
    }
    bc_room *room = bc_sandbox_room(rt);
    bc_doctor_add(json, "sandbox", "ok", bc_launcher_mode(room->launcher), "");
    add_layers(json, bc_buf_data(&sbx->layers));
    barchan_sandbox_destroy(sbx);
}

int barchan_doctor(barchan_runtime *rt, char **json, barchan_error *err)
{
    if (json == NULL) return bc_error_set(err, BARCHAN_EINVAL, "json is NULL");
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) rc = bc_sandbox_may_wait(rt, err);
    if (rc < 0) return rc;
    bc_buf report cleanup_buf;
    bc_buf_init(&report, MAX_REPORT);
    bc_buf_append_char(&report, '[');
    bc_doctor_probe_host(&report);
    try_sandbox(&report, rt);
    bc_buf_append_char(&report, ']');
    *json = bc_buf_take(&report, NULL);
    return *json == NULL ? bc_error_nomem(err) : 0;
}
