/*
 * Errors, shared by every module.
 *
 * Every call that can fail returns an int: 0 or a count on success, a negative
 * `barchan_status` on failure. Its last parameter is a `barchan_error *`, which may be NULL.
 * The struct belongs to the caller, has a fixed size and needs no clearing: success never
 * touches it, failure always fills it.
 *
 * What a command inside the sandbox does (exit 1, killed, timed out, out of memory) is a
 * field of a result, never an error. Errors are for what Barchan could not do.
 *
 * Thread safety: pure functions, callable anywhere.
 */
#ifndef BARCHAN_ERROR_H
#define BARCHAN_ERROR_H

#if defined(BARCHAN_BUILDING)
#define BARCHAN_API __attribute__((visibility("default")))
#else
#define BARCHAN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Stable values: new ones are added at the end. `barchan_status_name` gives the name that Lua
 * scripts see in `err.code`. */
typedef enum barchan_status {
    BARCHAN_OK = 0,
    BARCHAN_EINVAL = -1,        /* "invalid_argument": the call itself is wrong */
    BARCHAN_ENOMEM = -2,        /* "no_memory" */
    BARCHAN_EBUSY = -3,         /* "busy": something else has it (retryable: until that ends by
                                   itself), or a blocking call inside a callback */
    BARCHAN_ECLOSED = -4,       /* "closed": the handle was destroyed or terminated before */
    BARCHAN_ETIMEDOUT = -5,     /* "timeout" */
    BARCHAN_ECANCELLED = -6,    /* "cancelled": by a cancel token */
    BARCHAN_ENOTFOUND = -7,     /* "not_found": file, function, model, template */
    BARCHAN_EEXISTS = -8,       /* "exists" */
    BARCHAN_EPERMISSION = -9,   /* "permission": refused by the system or by a provider */
    BARCHAN_EUNSUPPORTED = -10, /* "unsupported": this kernel, build or provider cannot */
    BARCHAN_EIO = -11,          /* "io": a system call failed; see os_error */
    BARCHAN_EPROTOCOL = -12,    /* "protocol": the peer broke the rules of its format */
    BARCHAN_ELIMIT = -13,       /* "limit": a documented maximum was reached */
    BARCHAN_ELOST = -14,        /* "lost": the sandbox or process is gone */
    BARCHAN_ENETWORK = -15,     /* "network": resolve, connect, TLS or transfer failed */
    BARCHAN_EAUTH = -16,        /* "auth": a key is missing or refused */
    BARCHAN_EREQUEST = -17,     /* "invalid_request": a provider refused the request */
    BARCHAN_ERATE = -18,        /* "rate_limited" */
    BARCHAN_EQUOTA = -19,       /* "quota": credit or spend limit used up; retrying cannot help */
    BARCHAN_EOVERLOADED = -20,  /* "overloaded" */
    BARCHAN_ESERVER = -21,      /* "server": a provider's own failure */
    BARCHAN_ECONTEXT = -22,     /* "context_window": the conversation is too long for the model */
    BARCHAN_EFILTERED = -23,    /* "content_filter" */
    BARCHAN_ESCRIPT = -24,      /* "script": a Lua script threw; message has the traceback */
    BARCHAN_ENOTDIR = -25,      /* "not_a_directory" */
    BARCHAN_EISDIR = -26,       /* "is_a_directory" */
    BARCHAN_ENOTREG = -27,      /* "not_a_regular_file": a FIFO, socket or device */
    BARCHAN_ELINK = -28,        /* "is_a_symlink": a link where none may be followed */
    BARCHAN_ENOSPACE = -29,     /* "no_space": the sandbox's storage limit was reached */
    BARCHAN_ENOTEMPTY = -30,    /* "not_empty" */
    BARCHAN_ECONFLICT = -31     /* "conflict": somebody else has changed it meanwhile */
} barchan_status;

typedef struct barchan_error {
    int code;               /* a barchan_status, negative */
    int os_error;           /* the system's error number, 0 when none applies */
    int http_status;        /* the provider's HTTP status, 0 when none applies */
    int retryable;          /* 1 when the same call may succeed later, with nothing else done */
    long retry_after_ms;    /* how long the peer asked us to wait, -1 when it did not say */
    char where[32];         /* the operation, "sandbox.create" */
    char provider_code[64]; /* the provider's own code, "overloaded_error" */
    char request_id[96];    /* the provider's id of the request, for its support */
    char message[512];      /* for people: what failed, on what, why, what to do. One line;
                                 with BARCHAN_ESCRIPT followed by as much traceback as fits */
} barchan_error;

/* The name of a status, "invalid_argument"; "unknown" for a value that is none. Static. */
BARCHAN_API const char *barchan_status_name(int code);

/* The library's version, "0.1.0". Static. */
BARCHAN_API const char *barchan_version(void);

/* Frees memory that a function of the library handed over. NULL is ignored. */
BARCHAN_API void barchan_free(void *pointer);

#ifdef __cplusplus
}
#endif
#endif
