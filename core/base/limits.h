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

#endif
