/* The terminal that a person sits at: for a shell in a sandbox, not for the sandbox itself. */
#ifndef BC_SANDBOX_TERMINAL_H
#define BC_SANDBOX_TERMINAL_H

#include <termios.h>
#include "base/error.h"

typedef struct bc_terminal {
    int raw; /* `saved` is to be put back */
    struct termios saved;
} bc_terminal;

/* Standard input and output as bytes: keys are not echoed and make no signals. */
int bc_terminal_raw(bc_terminal *terminal, barchan_error *err);
/* As it was. */
void bc_terminal_restore(bc_terminal *terminal);
int bc_terminal_size(int *columns, int *rows, barchan_error *err);

#endif
