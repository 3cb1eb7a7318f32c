/* A guest whose changes are applied to a folder of the host, dest, beside which nothing is touched.
 */
#ifndef TESTS_FAKE_CHANGES_H
#define TESTS_FAKE_CHANGES_H

#include <barchan/apply.h>
#include "fake_guest.h"

enum { FILE_ = BARCHAN_FILE_REGULAR, FOLDER = BARCHAN_FILE_DIRECTORY, LINK = BARCHAN_FILE_SYMLINK };

extern char dir[64];   /* of the test's own, with dest and outside in it */
extern int done, code; /* how often the end was told, and its status */
extern barchan_apply_result result;
extern bc_wire_writer list; /* the changes so far */
extern uint32_t stream;     /* the last that the library has opened */

/* Around each test. */
void begin(void);
void end(void);

/* A path below dir. */
const char *at(const char *name);
void put(const char *name, const char *text);
/* NULL: it is not there. */
void has(const char *name, const char *text);
/* dest has exactly these names, sorted, each followed by a space. */
void folder_holds(const char *names);

void start(barchan_apply_options options);
void change(uint32_t kind, uint32_t type, uint32_t mode, const char *path, const char *target);
/* The end of the call that is answered. */
void say_done(uint64_t bytes, uint32_t truncated);
void say_list(void);
void say_file(const char *text);

#endif
