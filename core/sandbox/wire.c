#include <string.h>
#include "internal.h"

int bc_put_wire_u32(bc_buf *out, uint32_t value)
{
    unsigned char bytes[4];
    bc_put_u32(bytes, value);
    return bc_buf_append(out, bytes, sizeof bytes);
}

int bc_put_wire_u64(bc_buf *out, uint64_t value)
{
    unsigned char bytes[8];
    bc_put_u64(bytes, value);
    return bc_buf_append(out, bytes, sizeof bytes);
}

int bc_put_wire_string(bc_buf *out, const char *text, size_t len)
{
    int rc = bc_put_wire_u32(out, (uint32_t)len);
    if (rc == 0) rc = bc_buf_append(out, text, len);
    if (rc == 0) rc = bc_buf_append(out, "", 1);
    return rc;
}

const char *bc_printable(char *to, size_t cap, const char *from)
{
    size_t i = 0;
    for (; from[i] != '\0' && i + 1 < cap; i++) {
        unsigned char c = (unsigned char)from[i];
        to[i] = c < 0x20 || c == 0x7F ? '?' : from[i];
    }
    to[i] = '\0';
    return to;
}

void bc_error_of_guest(barchan_error *err, uint32_t status, uint32_t os_error, const char *message)
{
    char words[BC_FRAME_MAX_MESSAGE + 1];
    bc_printable(words, sizeof words, message);
    int code = status != BC_WIRE_OS_ERROR ? -(int)status : bc_status_of_os((int)os_error);
    bc_error_set(err, code, "%s", words[0] == '\0' ? barchan_status_name(code) : words);
    err->os_error = (int)os_error;
    err->retryable = code == BARCHAN_EBUSY; /* it has none that do not pass */
}

int bc_read_status(bc_wire_reader *in, barchan_error *err)
{
    uint32_t status = bc_wire_u32(in), os_error = bc_wire_u32(in);
    const char *message = bc_wire_string(in, BC_FRAME_MAX_MESSAGE);
    if (in->bad || status > BC_WIRE_MAX_STATUS || os_error > 4095) return -1;
    *err = (barchan_error){0};
    if (status != 0 || os_error != 0) bc_error_of_guest(err, status, os_error, message);
    return 0;
}

int bc_read_failure(bc_wire_reader *in, barchan_error *err)
{
    return bc_read_status(in, err) < 0 || !bc_wire_done(in) || err->code == 0 ? -1 : 0;
}
