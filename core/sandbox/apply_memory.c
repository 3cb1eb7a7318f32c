/* Which files of the host are as an earlier call has written them: a table by inode, whose entry
 * holds for as long as the file's ctime is what it was. */
#include "apply.h"

#include <stdlib.h>
#include "base/limits.h"

static size_t place_of(const bc_written *table, dev_t dev, ino_t ino)
{
    size_t at = (size_t)((uint64_t)ino * 0x9E3779B97F4A7C15u >> 20) & (table->capacity - 1);
    while (table->files[at].ino != 0 &&
           (table->files[at].ino != ino || table->files[at].dev != dev)) {
        at = (at + 1) & (table->capacity - 1);
    }
    return at;
}

static int grow(bc_written *table)
{
    bc_written larger = {.capacity = table->capacity == 0 ? 64 : table->capacity * 2};
    if (larger.capacity > BC_APPLY_MAX_WRITTEN) return -1;
    larger.files = calloc(larger.capacity, sizeof *larger.files);
    if (larger.files == NULL) return -1;
    for (size_t i = 0; i < table->capacity; i++) {
        const struct bc_written_file *file = &table->files[i];
        if (file->ino == 0) continue;
        larger.files[place_of(&larger, file->dev, file->ino)] = *file;
        larger.count++;
    }
    free(table->files);
    *table = larger;
    return 0;
}

/* What is forgotten for want of memory will be a conflict: nothing is lost by it. */
void bc_apply_remember(barchan_sandbox *sbx, const struct stat *st)
{
    bc_written *table = &sbx->written;
    if (table->count * 2 >= table->capacity && grow(table) < 0) return;
    struct bc_written_file *file = &table->files[place_of(table, st->st_dev, st->st_ino)];
    if (file->ino == 0) table->count++;
    *file = (struct bc_written_file){.dev = st->st_dev, .ino = st->st_ino, .ctime = st->st_ctim};
}

int bc_apply_is_ours(const barchan_sandbox *sbx, const struct seen *seen)
{
    const bc_written *table = &sbx->written;
    if (table->capacity == 0) return 0;
    const struct bc_written_file *file = &table->files[place_of(table, seen->dev, seen->ino)];
    return file->ino != 0 && file->ctime.tv_sec == seen->ctime.tv_sec &&
           file->ctime.tv_nsec == seen->ctime.tv_nsec;
}

void bc_apply_forget(barchan_sandbox *sbx)
{
    free(sbx->written.files);
    sbx->written = (bc_written){0};
}
