#include "failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int fail_os(struct failure *why, int os_error, const char *format, ...)
{
    why->status = BC_WIRE_OS_ERROR;
    why->os_error = (uint32_t)os_error;
    va_list args;
    va_start(args, format);
    vsnprintf(why->message, sizeof why->message, format, args);
    va_end(args);
    size_t used = strlen(why->message);
    snprintf(why->message + used, sizeof why->message - used, ": %s", strerror(os_error));
    return -1;
}

int fail_status(struct failure *why, uint32_t status, const char *format, ...)
{
    why->status = status;
    why->os_error = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(why->message, sizeof why->message, format, args);
    va_end(args);
    return -1;
}

int fail_hint(struct failure *why, const char *hint)
{
    size_t used = strlen(why->message);
    snprintf(why->message + used, sizeof why->message - used, " (%s)", hint);
    return -1;
}

void failure_encode(bc_wire_writer *out, const struct failure *why)
{
    bc_wire_put_u32(out, why->status);
    bc_wire_put_u32(out, why->os_error);
    bc_wire_put_string(out, why->message, strlen(why->message));
}

void failure_send(int fd, uint32_t type, uint32_t stream, const struct failure *why)
{
    unsigned char frame[BC_FRAME_HEADER + 13 + BC_FRAME_MAX_MESSAGE];
    bc_wire_writer out = {.data = frame, .len = BC_FRAME_HEADER, .cap = sizeof frame};
    failure_encode(&out, why);
    bc_frame_put_header(frame, type, stream, (uint32_t)(out.len - BC_FRAME_HEADER));
    if (send(fd, frame, out.len, MSG_NOSIGNAL) < 0 && errno == ENOTSOCK) {
        (void)!write(fd, frame, out.len);
    }
}
