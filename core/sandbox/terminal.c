#include "terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

int bc_terminal_raw(bc_terminal *terminal, barchan_error *err)
{
    if (terminal->raw) return 0;
    if (tcgetattr(STDIN_FILENO, &terminal->saved) < 0) {
        return bc_error_set_os(err, errno, "standard input is no terminal");
    }
    struct termios raw = terminal->saved;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0) {
        return bc_error_set_os(err, errno, "change the terminal");
    }
    terminal->raw = 1;
    return 0;
}

void bc_terminal_restore(bc_terminal *terminal)
{
    if (terminal->raw) tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    terminal->raw = 0;
}

int bc_terminal_size(int *columns, int *rows, barchan_error *err)
{
    struct winsize size;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0) {
        return bc_error_set_os(err, errno, "standard input is no terminal");
    }
    *columns = size.ws_col > 0 ? size.ws_col : 80; /* some serial lines do not tell */
    *rows = size.ws_row > 0 ? size.ws_row : 24;
    return 0;
}
