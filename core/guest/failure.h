/* Why a step of the set-up failed; travels to the library as it is and is what the user reads. */
#ifndef GUEST_FAILURE_H
#define GUEST_FAILURE_H

#include <stdarg.h>
#include <stdint.h>
#include "channel/frame.h"

struct failure {
    uint32_t status; /* bc_wire_status */
    uint32_t os_error;
    char message[BC_FRAME_MAX_MESSAGE];
};

/* Both return -1. The message names the step; the system's words are added to it. */
int fail_os(struct failure *why, int os_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int fail_status(struct failure *why, uint32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends a remedy: "mount proc: Operation not permitted (…)". Returns -1. */
int fail_hint(struct failure *why, const char *hint);

/* The payload of BC_FRAME_FAILED and BC_CONTROL_FAILED. */
void failure_encode(bc_wire_writer *out, const struct failure *why);
/* Sends it as a whole frame. */
void failure_send(int fd, uint32_t type, uint32_t stream, const struct failure *why);

#endif
