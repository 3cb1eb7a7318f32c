/* What the two kinds of template share: synthetic files, directories to mount on, /dev. */
#ifndef GUEST_TEMPLATE_H
#define GUEST_TEMPLATE_H

#include <stdbool.h>
#include "failure.h"

struct template_file {
    const char *path, *text;
};
/* Files of /etc that say the same in every sandbox; ends with a NULL path. */
extern const struct template_file template_etc_files[];

#define TEMPLATE_PASSWD_ROOT "root:x:0:0:root:/root:/bin/sh\n"
#define TEMPLATE_PASSWD_USER "user:x:1000:1000:user:/home/user:/bin/sh\n"
#define TEMPLATE_PASSWD_NOBODY "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
#define TEMPLATE_GROUP_ROOT "root:x:0:\n"
#define TEMPLATE_GROUP_USER "user:x:1000:\n"
#define TEMPLATE_GROUP_NOGROUP "nogroup:x:65534:\n"

/* Binds the host's `path` at the same place below `root`; what is missing and not required is
 * left out. */
int template_show(const char *root, const char *path, bool required, struct failure *why);
int template_make_dev(const char *root, struct failure *why);
int template_make_dirs(const char *root, struct failure *why);

#endif
