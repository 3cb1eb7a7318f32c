/*
 * Every maximum of the core, each with its reason. What a guest, a server, a model or a script
 * sends is bounded by one of these before anything is allocated for it.
 */
#ifndef BC_BASE_LIMITS_H
#define BC_BASE_LIMITS_H

/* JSON: RFC 8259 sets none. Real bodies nest below 20; a parser's stack must not be the model's
 * to fill. */
#define BC_JSON_MAX_DEPTH 128
/* Anthropic refuses requests over 32 MB (HTTP 413); nothing that we send or read is larger. */
#define BC_JSON_MAX_BYTES (64u << 20)

/* Channel: the maxima of its format are in channel/frame.h, which the guest shares. */
/* Requests that a guest has not read yet. Input is bounded by credit; this bounds the requests
 * themselves, each up to 4 MiB. */
#define BC_CHANNEL_MAX_QUEUE (64u << 20)

/* Sandbox. */
#define BC_SANDBOX_DEFAULT_LEASE_MS (30 * 60 * 1000LL)
#define BC_SANDBOX_MAX_LEASE_MS (7 * 24 * 3600 * 1000LL)
#define BC_SANDBOX_DEFAULT_STORAGE_BYTES (1024ULL << 20)
/* Below it the set-up itself does not fit. */
#define BC_SANDBOX_MIN_STORAGE_BYTES (1ULL << 20)
#define BC_SANDBOX_DEFAULT_CREATE_MS 30000
/* Variables of one list: merging compares each with each. */
#define BC_ENV_MAX 4096
#define BC_EXEC_DEFAULT_TIMEOUT_MS 60000
#define BC_EXEC_DEFAULT_GRACE_MS 2000
#define BC_EXEC_DEFAULT_OUTPUT_BYTES (1LL << 20)
/* How much longer than the guest the library waits before it gives up on an exec's end. */
#define BC_EXEC_MARGIN_MS 5000
/* Without a sink a file read is held in memory. */
#define BC_FILE_MAX_READ_BYTES (64ULL << 20)
#define BC_FILE_MAX_ENTRIES 100000u
#define BC_FILE_MAX_DEPTH 64
#define BC_FILE_IDLE_MS 60000

#endif
