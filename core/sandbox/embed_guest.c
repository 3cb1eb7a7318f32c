/* The guest program's bytes, put here by the assembler. */
#include "guest_image.h"

__asm__(".section .rodata.barchan_guest,\"a\"\n"
        ".balign 16\n"
        ".global bc_guest_image\n"
        ".hidden bc_guest_image\n"
        "bc_guest_image:\n"
        ".incbin \"" BARCHAN_GUEST_FILE "\"\n"
        ".global bc_guest_image_end\n"
        ".hidden bc_guest_image_end\n"
        "bc_guest_image_end:\n"
        ".byte 0\n"
        ".previous\n");

size_t bc_guest_image_size(void)
{
    return (size_t)(bc_guest_image_end - bc_guest_image);
}
