"""Rows G130 to G143: files, by the library's file operations."""
from layer import Layer

WRITE = "core/guest/file_write.c"

LAYERS = [
    Layer("G133", "what is written gets its name when it is complete",
          [(WRITE, "? open_nameless(path) : -1;", "? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;"),
           (WRITE, "fchmod(fd, mode) < 0 || put_in_place(fd, request->path) < 0", "fchmod(fd, mode) < 0")],
          "sandbox/transfer", ["what_had_the_name_stays_as_it_was"]),
    Layer("G133", "only files are written over",
          [(WRITE, "    if (!S_ISREG(st.st_mode)) return file_fail_type(result, st.st_mode);\n"
                   "    if (request->mode == 0)", "    if (request->mode == 0)")],
          "sandbox/files", ["errors_of_reading_and_writing"]),
    Layer("G139", "who gives up takes the temporary name along",
          [(WRITE, "? open_nameless(path) : -1;", "? (errno = ENOENT, -1) : -1;"),
           (WRITE, "    unlink(temporary);\n    _exit(1);", "    _exit(1);")],
          "sandbox/transfer", ["giving_up_leaves_nothing"]),
]
