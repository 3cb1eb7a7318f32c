"""Rows G016 to G024: names and places."""
from layer import Layer

MOUNTS = "core/guest/mounts.c"
ROOT = "core/guest/isolate_root.c"

LAYERS = [
    Layer("G016", "attributes are set on a copy, not on the host's files",
          [(MOUNTS, "if (m->mode != BC_MOUNT_READ_WRITE) attr", "if (m->mode == BC_MOUNT_READ_ONLY) attr"),
           (MOUNTS, "if (m->mode == BC_MOUNT_COPY_ON_WRITE || m->mode == BC_MOUNT_TEMPLATE) {",
            "if (m->mode == BC_MOUNT_TEMPLATE) {")],
          "sandbox/copies", ["attributes"]),
    Layer("G019", "the program in memory is sealed",
          [("core/sandbox/guest_image.c", "F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE", "F_SEAL_SEAL")],
          "sandbox/host", ["the_program_is_sealed"]),
    Layer("G019", "an installed program is compared with the embedded one",
          [("core/sandbox/guest_image.c", "if (!is_copy(fd)) {", "if (!is_copy(fd) && fd < 0) {")],
          "sandbox/host", ["an_installed_guest"]),
    Layer("G022", "what is shown of the host is in no group of mounts",
          [(MOUNTS, ".propagation = MS_PRIVATE", ".propagation = 0")],
          "sandbox/mounts", ["mounts_of_the_host"]),
    Layer("G023", "each sandbox has a /tmp of its own",
          [(ROOT, "if (mount(text, w->target, NULL, MS_BIND, NULL) < 0) {",
            "if (mount(i == 0 ? WORLD_EMPTY : text, w->target, NULL, MS_BIND, NULL) < 0) {"),
           ("core/guest/world.c", "mount(BUILD_AT WORLD_EMPTY, BUILD_AT WORLD_EMPTY, NULL, MS_BIND, NULL) < 0 ||\n"
                                  "        protect_tree(BUILD_AT WORLD_EMPTY, 0) < 0",
            "chmod(BUILD_AT WORLD_EMPTY, 01777) < 0")],
          "hostile/guest", ["sandboxes_do_not_see_each_other"]),
    Layer("G024", "Barchan's own state cannot be shown",
          [("core/guest/mounts_check.c", "if (is_within(path, own[i]) || is_within(own[i], path)) {",
            "if (own[i] == NULL) {"),
           ("core/sandbox/mounts.c", "if (bc_held_is_in(m->source)) {", "if (m->source == NULL) {")],
          "sandbox/mounts", ["what_is_refused"]),
]
