#include "secret_given.h"

#include <string.h>
#include "suite.h"

static const char *const a_host[] = {"a.example", NULL};
bc_secret secrets[2];

const char *const no_list[1] = {NULL};
const char nothing[1] = "";

const barchan_secret *given(barchan_secret said)
{
    static barchan_secret secret;
    secret = said;
    if (said.name == NULL) secret.name = "TOKEN";
    if (said.name == nothing) secret.name = nothing;
    if (said.value == NULL) secret.value = VALUE;
    if (said.value_len == 0) secret.value_len = strlen(secret.value);
    if (said.value == nothing) secret.value = nothing;
    if (said.hosts == NULL) secret.hosts = a_host;
    if (said.hosts == no_list) secret.hosts = no_list;
    return &secret;
}

void forget_secrets(void)
{
    bc_secret_clear(&secrets[0]);
    bc_secret_clear(&secrets[1]);
}

void has(size_t i, const barchan_secret *given)
{
    barchan_error err = {0};
    bc_secret_clear(&secrets[i]);
    ck_assert_msg(bc_secret_read(&secrets[i], given, &err) == 0, "%s", err.message);
}
