/* Secrets as a program gives them, for the tests of what is made of them. */
#ifndef SECRET_GIVEN_H
#define SECRET_GIVEN_H

#include "egress/secret.h"

#define VALUE "0123456789abcdef-value"
#define GIVEN(...) given((barchan_secret){.struct_size = sizeof(barchan_secret), __VA_ARGS__})
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

extern bc_secret secrets[2];
/* What a test does not say; `nothing` is said with the address of these. */
extern const char *const no_list[1];
extern const char nothing[1];

/* With what was left out; borrowed until the next call. */
const barchan_secret *given(barchan_secret said);
void has(size_t i, const barchan_secret *given);
void forget_secrets(void);

#endif
