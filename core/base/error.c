#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "ok",
    "invalid_argument",
    "no_memory",
    "busy",
    "closed",
    "timeout",
    "cancelled",
    "not_found",
    "exists",
    "permission",
    "unsupported",
    "io",
    "protocol",
    "limit",
    "lost",
    "network",
    "auth",
    "invalid_request",
    "rate_limited",
    "quota",
    "overloaded",
    "server",
    "context_window",
    "content_filter",
    "script",
    "not_a_directory",
    "is_a_directory",
    "not_a_regular_file",
    "is_a_symlink",
    "no_space",
    "not_empty",
    "conflict",
};

_Static_assert(sizeof names / sizeof *names == -(long)BARCHAN_ECONFLICT + 1, "a name per status");

const char *barchan_status_name(int code)
{
    size_t index = code <= 0 ? (size_t)(-(long)code) : sizeof names;
    return index < sizeof names / sizeof *names ? names[index] : "unknown";
}

int bc_status_of_name(const char *name)
{
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) return -(int)i;
    }
    return 0;
}

void barchan_free(void *pointer)
{
    free(pointer);
}

const char *barchan_version(void)
{
    return BARCHAN_VERSION;
}

static int BC_PRINTF(4, 0)
    fill(barchan_error *err, int code, int os_error, const char *format, va_list args)
{
    if (err == NULL) return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    err->os_error = os_error;
    err->retry_after_ms = -1;
    vsnprintf(err->message, sizeof err->message, format, args);
    return code;
}

int bc_error_set(barchan_error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, 0, format, args);
    va_end(args);
    return code;
}

int bc_status_of_os(int os_error)
{
    switch (os_error) {
    case ENOMEM: return BARCHAN_ENOMEM;
    case ENOENT: return BARCHAN_ENOTFOUND;
    case EEXIST: return BARCHAN_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS: return BARCHAN_EPERMISSION;
    case ENOTDIR: return BARCHAN_ENOTDIR;
    case EISDIR: return BARCHAN_EISDIR;
    case ELOOP: return BARCHAN_ELINK;
    case ENOSPC:
    case EDQUOT: return BARCHAN_ENOSPACE;
    case ENOTEMPTY: return BARCHAN_ENOTEMPTY;
    case EINVAL:
    case ENAMETOOLONG: return BARCHAN_EINVAL;
    case ENOSYS:
    case EOPNOTSUPP: return BARCHAN_EUNSUPPORTED;
    case EMFILE:
    case ENFILE: return BARCHAN_ELIMIT;
    default: return BARCHAN_EIO;
    }
}

int bc_error_set_os(barchan_error *err, int os_error, const char *format, ...)
{
    int code = bc_status_of_os(os_error);
    va_list args;
    va_start(args, format);
    fill(err, code, os_error, format, args);
    va_end(args);
    if (err == NULL) return code;
    size_t used = strlen(err->message);
    char words[128];
    /* The GNU strerror_r is thread-safe and does not depend on the locale being set by us. */
    snprintf(err->message + used, sizeof err->message - used, ": %s",
             strerror_r(os_error, words, sizeof words));
    return code;
}

int bc_error_nomem(barchan_error *err)
{
    return bc_error_set(err, BARCHAN_ENOMEM, "out of memory");
}

int bc_error_busy(barchan_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, BARCHAN_EBUSY, 0, format, args);
    va_end(args);
    if (err != NULL) err->retryable = 1;
    return BARCHAN_EBUSY;
}

void bc_error_context(barchan_error *err, const char *format, ...)
{
    if (err == NULL) return;
    char inner[sizeof err->message];
    memcpy(inner, err->message, sizeof inner);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s", inner);
}

int bc_error_recode(barchan_error *err, int code)
{
    if (err != NULL) err->code = code;
    return code;
}

void bc_error_where(barchan_error *err, const char *where)
{
    if (err == NULL || err->where[0] != '\0') return;
    snprintf(err->where, sizeof err->where, "%s", where);
}

void bc_operation_end(bc_operation *operation)
{
    if (operation->error.code == 0 || operation->to == NULL) return;
    bc_error_where(&operation->error, operation->where);
    *operation->to = operation->error;
}
