/* barchan_doctor: looks at the host, then tries what really counts: a sandbox. */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>
#include "base/json_scan.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "internal.h"
#include "launcher.h"

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
            /* A limit that cannot be held is no obstacle to sandboxes that do not ask for it. */
            int needed = missing && strcmp(bc_buf_data(&name), "sandbox.cpus") != 0;
            int held = !missing && strncmp(detail, "not ", 4) != 0;
            bc_doctor_add(json, bc_buf_data(&name),
                          needed ? "missing"
                          : held ? "ok"
                                 : "info",
                          missing ? detail + 9 : detail,
                          needed ? "sandboxes that ask for it need best_effort without it" : "");
        }
    }
}

/* ---- the report: what the host looks like, then a sandbox that is tried ---- */

struct doctor {
    bc_buf report;
    barchan_runtime *rt;
    barchan_sandbox *sbx;
    barchan_doctor_fn done;
    void *ud;
    bc_defer defer; /* for a sandbox that failed at once */
    barchan_error failure;
};

static void finish(struct doctor *doctor)
{
    barchan_error err;
    bc_buf_append_char(&doctor->report, ']');
    barchan_sandbox_destroy(doctor->sbx);
    size_t len;
    char *json = bc_buf_take(&doctor->report, &len);
    if (json == NULL) bc_error_nomem(&err);
    doctor->done(json, json == NULL ? &err : NULL, doctor->ud);
    free(json);
    free(doctor);
}

static void add_failure(struct doctor *doctor, const barchan_error *err)
{
    static const char missing[] = "\"missing\"";
    int named = memmem(bc_buf_data(&doctor->report), doctor->report.len, missing,
                       sizeof missing - 1) != NULL;
    const char *remedy = named ? "see what is missing above" : "";
    bc_doctor_add(&doctor->report, "sandbox", "missing", err->message, remedy);
}

static void on_created(barchan_sandbox *sbx, const barchan_error *err, void *ud)
{
    struct doctor *doctor = ud;
    if (err != NULL) {
        add_failure(doctor, err);
    } else {
        bc_room *room = bc_sandbox_room(doctor->rt);
        bc_doctor_add(&doctor->report, "sandbox", "ok", bc_launcher_mode(room->launcher), "");
        add_layers(&doctor->report, bc_buf_data(&sbx->layers));
    }
    finish(doctor);
}

static void finish_deferred(bc_defer *defer)
{
    struct doctor *doctor = owner_of(defer, struct doctor, defer);
    add_failure(doctor, &doctor->failure);
    finish(doctor);
}

int barchan_doctor_start(barchan_runtime *rt, barchan_doctor_fn done, void *ud, barchan_error *err)
{
    BC_OPERATION("doctor");
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    if (done == NULL) return bc_error_set(err, BARCHAN_EINVAL, "done is NULL");
    struct doctor *doctor = calloc(1, sizeof *doctor);
    if (doctor == NULL) return bc_error_nomem(err);
    doctor->rt = rt;
    doctor->done = done;
    doctor->ud = ud;
    bc_buf_init(&doctor->report, BC_DOCTOR_MAX_BYTES);
    bc_buf_append_char(&doctor->report, '[');
    bc_doctor_probe_host(&doctor->report);
    /* With limits, so that what holds them shows. */
    const barchan_profile profile = {
        .struct_size = sizeof profile,
        .best_effort = 1,
        .limits = {.memory_bytes = 256 << 20, .cpus_milli = 1000, .pids = 100, .cpu_ms = 60000},
    };
    if (barchan_sandbox_create_start(&doctor->sbx, rt, &profile, on_created, doctor,
                                     &doctor->failure) < 0) {
        bc_defer_schedule(rt, &doctor->defer, finish_deferred);
    }
    return 0;
}

/* ---- the same, waiting ---- */

struct wait {
    bc_outcome outcome;
    char *json;
};

static void on_report(const char *json, const barchan_error *err, void *ud)
{
    struct wait *wait = ud;
    bc_outcome_set(&wait->outcome, err);
    if (json != NULL) wait->json = strdup(json);
    if (err == NULL && wait->json == NULL) bc_error_nomem(&wait->outcome.error);
}

int barchan_doctor(barchan_runtime *rt, char **json, barchan_error *err)
{
    BC_OPERATION("doctor");
    struct wait wait = {0};
    if (json == NULL) return bc_error_set(err, BARCHAN_EINVAL, "json is NULL");
    int rc = bc_runtime_check(rt, err);
    if (rc == 0) rc = bc_runtime_may_wait(rt, err);
    if (rc == 0) rc = barchan_doctor_start(rt, on_report, &wait, err);
    if (rc == 0) rc = bc_outcome_wait(&wait.outcome, rt, err);
    *json = wait.json;
    return rc;
}
