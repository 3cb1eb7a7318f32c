/*
 * How the writable places of a sandbox travel as one stream, for snapshots: what BC_FILE_OP_PACK
 * writes as BC_FRAME_OUT, records one after the other, cut anywhere. Part of frame.h, by which it
 * is included.
 *
 * The records follow a walk: a folder is entered, what is in it comes, it is left. So a name is
 * always one part of a path, below the folder that was entered last, and whoever unpacks resolves
 * no path. The first level is the places, by their names below.
 *
 * Each begins with a u32 bc_pack_kind.
 */
#ifndef BC_CHANNEL_PACK_H
#define BC_CHANNEL_PACK_H

#include "channel/frame.h"

enum bc_pack_kind {
    BC_PACK_FOLDER = 1, /* u32 mode, string name: enters it */
    BC_PACK_LEAVE = 2,  /* i64 s, u32 ns: its time of modification */
    BC_PACK_FILE = 3,   /* u32 mode, i64 s, u32 ns, u64 size, u32 id (not 0: it comes again), string
                           name; then extents: u32 length and as many bytes, or BC_PACK_HOLE and a
                           u64 length, and a 0 at the end: together as much as the size */
    BC_PACK_LINK = 4,   /* i64 s, u32 ns, string name, string target: a symbolic link */
    BC_PACK_AGAIN = 5,  /* u32 id, string name: another name of a file that came before */
    BC_PACK_DONE = 6    /* u64 entries, u64 bytes (of extents), u32 left out: nothing follows */
};
#define BC_PACK_HOLE 0xFFFFFFFFu
#define BC_PACK_MAX_EXTENT 65536u
#define BC_PACK_MAX_NAME 255u
/* Of folders below a place; each costs both sides a descriptor. */
#define BC_PACK_MAX_LEVELS 128u
/* Files with more than one name that are told as such; more come as files of their own. */
#define BC_PACK_MAX_IDS 65536u
/* A record without its extents. */
#define BC_PACK_MAX_RECORD (BC_FRAME_MAX_PATH + BC_PACK_MAX_NAME + 64u)

#define BC_PACK_PLACES 4u
typedef struct bc_pack_place {
    const char *name, *target;
} bc_pack_place;

static inline const bc_pack_place *bc_pack_place_of(unsigned i)
{
    static const bc_pack_place places[BC_PACK_PLACES] = {{"home", "/home/user"},
                                                         {"workspace", "/workspace"},
                                                         {"tmp", "/tmp"},
                                                         {"var_tmp", "/var/tmp"}};
    return &places[i];
}

#endif
