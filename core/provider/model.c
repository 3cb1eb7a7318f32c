/* The model's handle. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/cleanup.h"
#include "base/options.h"
#include "model_internal.h"

void bc_model_retain(barchan_model *model)
{
    model->references++;
}

static void free_model(barchan_model *model)
{
    bc_replay_close(model->replay);
    bc_history_clear(&model->history);
    bc_buf_clear(&model->spare);
    free((char *)model->info.name);
    free((char *)model->info.base_url);
    if (model->info.api_key != NULL) {
        explicit_bzero((char *)model->info.api_key, strlen(model->info.api_key));
    }
    free((char *)model->info.api_key);
    for (char **h = model->headers; h != NULL && *h != NULL; h++) {
        explicit_bzero(*h, strlen(*h)); /* a key may be in it */
        free(*h);
    }
    free(model->headers);
    bc_recording_close(model->means.recording);
    bc_playback_close(model->means.playback);
    bc_secrets_clear(&model->secrets);
    free(model);
}

void bc_model_release(barchan_model *model)
{
    if (--model->references == 0) free_model(model);
}

/* `done` may destroy the model or ask it for more: neither works any more. */
static void end_completions(barchan_model *model)
{
    barchan_error err;
    model->destroyed = 1;
    bc_model_retain(model);
    bc_error_set(&err, BARCHAN_ECANCELLED, "the model was destroyed");
    bc_error_where(&err, "model.complete");
    while (model->completions != NULL)
        bc_completion_end(model->completions, NULL, &err);
    bc_model_release(model);
}

static void free_now(bc_defer *defer)
{
    bc_model_release(owner_of(defer, barchan_model, free_later));
}

/* The runtime ends. It still looks at the resident after this, so the memory goes a step later. */
static void on_runtime_end(bc_resident *resident)
{
    barchan_model *model = owner_of(resident, barchan_model, resident);
    bc_resident_remove(resident);
    end_completions(model);
    bc_defer_schedule(model->rt, &model->free_later, free_now);
}

void barchan_model_destroy(barchan_model *model)
{
    if (model == NULL || !bc_runtime_is_own(model->rt) || model->destroyed) return;
    bc_resident_remove(&model->resident);
    end_completions(model);
    bc_model_release(model);
}

/* ---- options ---- */

static int copy_string(const char *from, const char **to, barchan_error *err)
{
    if (from == NULL) return 0;
    *to = strdup(from);
    return *to != NULL ? 0 : bc_error_nomem(err);
}

/* What frames a request is not the host's: a second one, or one that differs, and a server or what
 * stands before it reads another request than was sent. */
static int check_header(const char *line, barchan_error *err)
{
    static const char *const ours[] = {"connection",       "content-encoding",
                                       "content-length",   "content-type",
                                       "expect",           "host",
                                       "proxy-connection", "te",
                                       "trailer",          "transfer-encoding",
                                       "upgrade"};
    int rc = bc_http_check_header(line, err);
    size_t len = strcspn(line, ":");
    for (size_t i = 0; rc == 0 && i < sizeof ours / sizeof *ours; i++) {
        if (strlen(ours[i]) != len || strncasecmp(line, ours[i], len) != 0) continue;
        rc = bc_error_set(err, BARCHAN_EINVAL,
                          "a header ('%s') is set by the library: leave it out", ours[i]);
    }
    return rc;
}

static int copy_headers(barchan_model *model, const char *const *headers, barchan_error *err)
{
    size_t count = 0;
    while (headers != NULL && headers[count] != NULL)
        count++;
    if (count == 0) return 0;
    model->headers = calloc(count + 1, sizeof *model->headers);
    if (model->headers == NULL) return bc_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        int rc = check_header(headers[i], err);
        if (rc < 0) return rc;
        model->headers[i] = strdup(headers[i]);
        if (model->headers[i] == NULL) return bc_error_nomem(err);
    }
    model->info.headers = (const char *const *)model->headers;
    return 0;
}

static int check_key(const char *key, barchan_error *err)
{
    for (const char *c = key; c != NULL && *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            return bc_error_set(err, BARCHAN_EINVAL,
                                "the API key has a line break or control character in it");
        }
    }
    return 0;
}

static int copy_base_url(barchan_model *model, const barchan_model_options *o, barchan_error *err)
{
    const char *base = o->base_url != NULL && *o->base_url != '\0'
                           ? o->base_url
                           : model->provider->default_base_url;
    int rc = bc_http_check_url(base, o->allow_plain_http, err);
    if (rc < 0) {
        bc_error_context(err, "base_url");
        return rc;
    }
    size_t len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        len--;
    model->info.base_url = strndup(base, len);
    return model->info.base_url != NULL ? 0 : bc_error_nomem(err);
}

static int set_up_means(barchan_model *model, const barchan_model_options *o, barchan_error *err)
{
    bc_exchange_means *means = &model->means;
    means->rt = model->rt;
    means->secrets = &model->secrets;
    means->request_id_header = model->provider->request_id_header;
    if (o->record_path != NULL && o->replay_path != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "record_path and replay_path exclude each other");
    }
    if (o->record_path != NULL) {
        const bc_recording_origin origin = {.provider = o->provider,
                                            .model = o->name,
                                            .base_url = model->info.base_url,
                                            .max_tokens = o->max_tokens,
                                            .max_retries = model->max_retries,
                                            .extra = o->recorded_extra};
        return bc_recording_open(&means->recording, o->record_path, &origin, means->secrets, err);
    }
    if (o->replay_path == NULL) return 0;
    return bc_playback_open(&means->playback, o->replay_path, o->provider, err);
}

static int set_up_wire(barchan_model *model, const barchan_model_options *o, barchan_error *err)
{
    if (o->name == NULL || *o->name == '\0') {
        return bc_error_set(err, BARCHAN_EINVAL, "a model of provider '%s' needs a name",
                            o->provider);
    }
    int rc = copy_base_url(model, o, err);
    if (rc == 0) rc = check_key(o->api_key, err);
    if (rc == 0 && o->api_key != NULL && *o->api_key != '\0') {
        rc = copy_string(o->api_key, &model->info.api_key, err);
    }
    if (rc == 0) rc = copy_headers(model, o->headers, err);
    if (rc == 0)
        rc = bc_secrets_init(&model->secrets, model->info.api_key, model->info.headers, err);
    return rc < 0 ? rc : set_up_means(model, o, err);
}

static int set_up_replay(barchan_model *model, const barchan_model_options *o, barchan_error *err)
{
    if (o->record_path != NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "record_path is for models over HTTP: a replay has no wire");
    }
    if (o->replay_path == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "the replay provider needs replay_path, the "
                            "transcript to play");
    }
    return bc_replay_open(&model->replay, o->replay_path, err);
}

static int set_up(barchan_model *model, const barchan_model_options *o, barchan_error *err)
{
    if (o->provider == NULL) return bc_error_set(err, BARCHAN_EINVAL, "'provider' is missing");
    if (o->max_retry_wait_ms < 0 || o->max_tokens < 0 || o->connect_timeout_ms < 0 ||
        o->idle_timeout_ms < 0 || o->timeout_ms < 0) {
        return bc_error_set(err, BARCHAN_EINVAL, "max_tokens and the times cannot be negative");
    }
    if (o->max_retries > BC_MODEL_MAX_RETRIES) {
        return bc_error_set(err, BARCHAN_EINVAL, "max_retries is %d; at most %d", o->max_retries,
                            BC_MODEL_MAX_RETRIES);
    }
    model->max_retries = o->max_retries == 0  ? BC_MODEL_DEFAULT_RETRIES
                         : o->max_retries < 0 ? 0
                                              : o->max_retries;
    model->max_retry_wait_ms =
        o->max_retry_wait_ms > 0 ? o->max_retry_wait_ms : BC_MODEL_DEFAULT_RETRY_WAIT_MS;
    model->info.max_tokens = o->max_tokens;
    model->allow_plain_http = o->allow_plain_http;
    model->connect_timeout_ms =
        o->connect_timeout_ms > 0 ? o->connect_timeout_ms : BC_MODEL_DEFAULT_CONNECT_MS;
    model->idle_timeout_ms = o->idle_timeout_ms > 0 ? o->idle_timeout_ms : BC_MODEL_DEFAULT_IDLE_MS;
    model->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : BC_MODEL_DEFAULT_TOTAL_MS;
    int rc = copy_string(o->name, &model->info.name, err);
    if (rc < 0) return rc;
    if (strcmp(o->provider, "replay") == 0) return set_up_replay(model, o, err);
    model->provider = bc_provider_find(o->provider);
    if (model->provider == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL,
                            "unknown provider '%.60s'; known are anthropic, openai, "
                            "openai-responses, gemini and replay",
                            o->provider);
    }
    return set_up_wire(model, o, err);
}

int barchan_model_create(barchan_model **out, barchan_runtime *rt,
                         const barchan_model_options *options, barchan_error *err)
{
    BC_OPERATION("model.create");
    if (out == NULL || options == NULL) {
        return bc_error_set(err, BARCHAN_EINVAL, "model_create needs options and a result");
    }
    *out = NULL;
    int rc = bc_runtime_check(rt, err);
    if (rc < 0) return rc;
    barchan_model_options o;
    barchan_model *model = calloc(1, sizeof *model);
    if (model == NULL) return bc_error_nomem(err);
    model->rt = rt;
    model->references = 1;
    bc_history_init(&model->history);
    bc_buf_init(&model->spare, BC_JSON_MAX_BYTES);
    rc = bc_options_copy(&o, sizeof o, options, err);
    if (rc == 0) rc = set_up(model, &o, err);
    if (rc < 0) {
        free_model(model);
        bc_error_context(err, "create model");
        return rc;
    }
    bc_resident_add(rt, &model->resident, on_runtime_end);
    *out = model;
    return 0;
}
