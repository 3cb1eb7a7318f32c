/*
 * Where templates are kept: $XDG_DATA_HOME/barchan/templates, of this user alone.
 *
 *     .lock             held, for moments only, by whoever looks something up or changes a name
 *     .t-16HEXDIGITS/   a template: manifest.json, home, workspace, tmp, var_tmp
 *     NAME              a link to it
 *
 * The folder never changes once it is whole; a name appears, moves and goes in one step. Who uses a
 * template has a shared lock on its folder, who makes or removes one an exclusive one; the kernel
 * gives them up with their owner. A folder without a name that nobody has locked is a leftover.
 */
#ifndef BC_SANDBOX_TEMPLATES_H
#define BC_SANDBOX_TEMPLATES_H

#include <barchan/template.h>
#include "internal.h"

#define BC_TEMPLATE_ID_LEN 19 /* ".t-" and 16 digits */

/* One that a sandbox was made from; zeroed: none. */
typedef struct bc_template_use {
    int dir_fd, fd; /* the directory of templates, and the template's folder, locked */
    char id[BC_TEMPLATE_ID_LEN + 1];
    char *path; /* of its folder; NULL: none */
    char *base;
    uint64_t entries, bytes;
} bc_template_use;

/* templates.c */
int bc_template_check_name(const char *name, barchan_error *err);
/* The template of this name, or id; it is locked until it is released. */
int bc_template_use_open(bc_template_use *use, const char *name, barchan_error *err);
void bc_template_release(bc_template_use *use);
/* For a profile: what is no template's name leaves sbx->template_use as it is. */
int bc_template_of_profile(barchan_sandbox *sbx, const char *name, barchan_error *err);
void bc_template_let_go(barchan_sandbox *sbx);
/* What the launcher has below the trees: "host" or a path. */
const char *bc_template_base(const barchan_sandbox *sbx);
/* The directory; `path` gets its path. Without `make` it is not made: BARCHAN_ENOTFOUND. */
int bc_templates_open(char *path, size_t cap, int make, barchan_error *err);
/* Whether a path of the host is, holds or lies in the directory, also before that is made. */
int bc_templates_is_in(const char *path);
/* A descriptor that is the lock. */
int bc_templates_lock(int dir_fd, barchan_error *err);
/* What a name leads to: 0 or -ENOENT. */
int bc_template_id_of(int dir_fd, const char *name, char id[BC_TEMPLATE_ID_LEN + 1]);
/* Whether a name leads to it; 1 when that cannot be known. */
int bc_template_has_name(int dir_fd, const char *id);
/* Its folder with this lock (LOCK_SH or LOCK_EX), or -errno; -EWOULDBLOCK: others have it. */
int bc_template_lock(int dir_fd, const char *id, int lock);
/* "'a', 'b'; barchan template build NAME …": for errors. */
int bc_template_not_found(int dir_fd, const char *name, barchan_error *err);
/* Sandboxes use it, says the error, and how many. */
int bc_template_in_use(int dir_fd, const char *id, const char *name, barchan_error *err);

/* A template in the making; zeroed: none. */
typedef struct bc_template_build {
    int dir_fd, fd; /* the template's folder, locked exclusively */
    char id[BC_TEMPLATE_ID_LEN + 1];
} bc_template_build;
int bc_template_begin(bc_template_build *build, barchan_error *err);
/* Whether the name could be given now. */
int bc_template_may_name(int dir_fd, const char *name, int replace, barchan_error *err);
/* Gives it its name; it stays as it is. NULL: none, but others may use it by its id while `build`
 * is not ended. */
int bc_template_publish(bc_template_build *build, const char *name, int replace,
                        barchan_error *err);
/* Lets go of it; without a publication, or without a name and users, nothing of it stays. */
void bc_template_end(bc_template_build *build);

/* template_list.c: removes what was left behind; how much. The directory is not locked. */
size_t bc_templates_sweep(int dir_fd);

/* template_manifest.c */
int bc_manifest_write(int folder_fd, const barchan_template *info, barchan_error *err);
/* Without the name. */
int bc_manifest_read(int folder_fd, barchan_template *info, barchan_error *err);

/* template_tree.c: removes a folder and all below it, whatever its rights; 0 or -errno. Follows no
 * link. */
int bc_tree_remove(int dir_fd, const char *name);

#endif
