/*
 * barchan-guest: the program on the other side of every wall. Started by the library as
 * `barchan-guest launcher` with descriptor 3 the control socket and 4 a pidfd of the host; each
 * sandbox's process 1 is a clone of it. Or, as `barchan-guest stdio`, started by whatever reaches
 * another computer, with the channel on its standard input and output.
 */
#include <string.h>
#include <unistd.h>
#include "launcher.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "launcher") == 0) launcher_main(3, 4);
    if (argc == 2 && strcmp(argv[1], "stdio") == 0) stdio_main();
    static const char text[] = "barchan-guest: started by Barchan, not by hand\n";
    (void)!write(2, text, sizeof text - 1);
    return 2;
}
