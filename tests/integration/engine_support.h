/* What the tests of the engine share: one runtime and one engine around each test, and short ways
 * to load a script, call its functions and see what came of it. */
#ifndef ENGINE_SUPPORT_H
#define ENGINE_SUPPORT_H

#include <barchan/engine.h>
#include "suite.h"

extern barchan_runtime *rt;
extern barchan_engine *engine;
extern barchan_error err;
/* What scripts printed and the events they made, one after the other; cleared by engine_setup. */
extern char printed[4096], events[4096];
void keep_print(const char *text, size_t len, void *ud);
void keep_event(const char *event, size_t len, void *ud);

void engine_setup(void);
void engine_teardown(void);

/* Opens `engine` with a slice limit that sanitizers can keep, printing and events to the above. */
void open_engine(barchan_library library, size_t memory_limit_bytes);
/* Opens it in the place of the one that is there, with these options as they are. */
void reopen_engine(const barchan_engine_options *options);

void load(const char *text);
/* The result's JSON text, for barchan_free. */
char *call(const char *function, const char *args);
void expect(const char *function, const char *args, const char *expected);
/* Calls a function that must fail so. */
void expect_error(const char *function, const char *args, int code, const char *message);

/* How a started call ended. */
struct outcome {
    int called, code;
    char result[sizeof((barchan_error *)NULL)->message]; /* or the error's message */
};
void on_done(const char *result, const barchan_error *error, void *outcome);
void pump_until(const int *done);

void add_tool(const char *name, barchan_tool_fn fn, void *ud);

#endif
