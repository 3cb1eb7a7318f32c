/* Shared by the tests of snapshots: a place for templates of their own. */
#ifndef SNAPSHOT_SUPPORT_H
#define SNAPSHOT_SUPPORT_H

#include "host_dir.h"
#include "sandbox_support.h"

/* Checked fixtures: a runtime, `sbx` of template "host", and XDG_DATA_HOME in a folder of the
 * host's (host_dir.h) that is removed at the end. */
void setup_templates(void);
void teardown_templates(void);

/* Of `sbx`; they must succeed, or fail with this code and these words. */
void snapshot(const char *name);
void snapshot_fails(const char *name, int code, const char *words);
/* `sbx` becomes one of this template; the one before ends. */
void begin_from(const char *template_name);
void begin_with(const barchan_profile *profile);
barchan_template info_of(const char *name);
/* Ends `sbx`, and waits until it is gone. */
void end_sandbox(void);

/* How many folders of templates there are, with a name or without. */
int count_folders(void);
/* 1 when there is none of this name. */
int is_removed(const char *name);

#endif
