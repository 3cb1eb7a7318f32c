/* Placeholders in connections that are not intercepted: other hosts, and those of secrets without
 * TLS. Nothing is changed there; it is told. */
#include <stdlib.h>
#include "egress/intercept.h"
#include "egress/relay.h"

void bc_secret_tell(const bc_relay *relay, const bc_secret *secret, bc_secret_note note)
{
    char text[384];
    bc_secret_note_text(secret, note, text, sizeof text);
    bc_relay_tell(relay, BARCHAN_NETWORK_SECRET, text);
}

static bc_redactor *new_strays(const bc_secrets *secrets)
{
    bc_redactor *strays = calloc(1, sizeof *strays);
    if (strays != NULL && bc_redactor_init(strays, secrets->placeholders) < 0) {
        free(strays);
        strays = NULL;
    }
    return strays;
}

void bc_strays_look(bc_relay *relay, const unsigned char *data, size_t len)
{
    const bc_secrets *secrets = relay->egress->secrets;
    if (secrets == NULL) return;
    if (relay->strays == NULL) relay->strays = new_strays(secrets);
    if (relay->strays == NULL) return; /* out of memory: it would only have been told */
    bc_redactor_look(relay->strays, (const char *)data, len);
    uint32_t found = relay->strays->hits & ~relay->strays_told;
    relay->strays->hits = 0;
    relay->strays_told |= found;
    for (size_t i = 0; found != 0 && i < secrets->count; i++) {
        if (found & 1u << i) bc_secret_tell(relay, &secrets->list[i], BC_SECRET_UNSAFE);
    }
}

void bc_strays_end(bc_relay *relay)
{
    if (relay->strays == NULL) return;
    bc_redactor_clear(relay->strays);
    free(relay->strays);
    relay->strays = NULL;
}
