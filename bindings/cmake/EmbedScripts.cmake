# barchan_embed_scripts(TARGET FOLDER...): compiles every *.lua below the folders into the target, each
# under its path from its folder's parent, as the array bl_scripts (bindings/lua/loader.h). The bytes come in by .incbin, so a changed
# script only needs its object assembled anew.
function(barchan_embed_scripts target)
  set(paths)
  foreach(folder ${ARGN})
    get_filename_component(dir ${folder} DIRECTORY)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${dir} ${folder}/*.lua)
    list(APPEND paths ${found})
    foreach(path ${found})
      set(_dir_of_${path} ${dir})
    endforeach()
  endforeach()
  list(SORT paths)
  set(blobs "")
  set(rows "")
  set(files)
  set(n 0)
  foreach(path ${paths})
    set(dir ${_dir_of_${path}})
    string(APPEND blobs "BLOB(bl_script_${n}, \"${dir}/${path}\")\n")
    string(APPEND rows "    {\"${path}\", bl_script_${n}, bl_script_${n}_end},\n")
    list(APPEND files ${dir}/${path})
    math(EXPR n "${n} + 1")
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_scripts.c)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[/* Made by EmbedScripts.cmake. */
#include "loader.h"

#define BLOB(name, file) \
    extern const char name[], name##_end[]; \
    __asm__(".section .rodata\n.hidden " #name "\n.hidden " #name "_end\n" \
            ".global " #name "\n.global " #name "_end\n" \
            #name ":\n.incbin \"" file "\"\n" #name "_end:\n.byte 0\n.previous\n");

@blobs@
const bl_script bl_scripts[] = {
@rows@    {NULL, NULL, NULL},
};
]])
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${out})
endfunction()
