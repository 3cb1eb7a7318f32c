/* What programs in a sandbox with secrets are to trust. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/secrets.h"

static int append_file(bc_buf *out, const char *path)
{
    char part[16384];
    size_t n;
    int rc = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0; /* then only the hosts of secrets are trusted */
    while (rc == 0 && (n = fread(part, 1, sizeof part, file)) > 0)
        rc = bc_buf_append(out, part, n);
    fclose(file);
    return rc;
}

int bc_secrets_bundle(const bc_secrets *secrets, char **pem, size_t *len, barchan_error *err)
{
    bc_buf out;
    bc_buf_init(&out, BC_SECRET_MAX_BUNDLE);
    const char *host = bc_ca_host_bundle();
    int rc = host == NULL ? 0 : append_file(&out, host);
    if (rc == 0) rc = bc_buf_append_char(&out, '\n');
    if (rc == 0) rc = bc_buf_append_string(&out, bc_ca_pem(secrets->ca));
    if (rc < 0) {
        bc_buf_clear(&out);
        return rc == BARCHAN_ENOMEM
                   ? bc_error_nomem(err)
                   : bc_error_set(err, BARCHAN_ELIMIT, "%s is larger than %u bytes", host,
                                  BC_SECRET_MAX_BUNDLE);
    }
    *pem = bc_buf_take(&out, len);
    return *pem == NULL ? bc_error_nomem(err) : 0;
}
