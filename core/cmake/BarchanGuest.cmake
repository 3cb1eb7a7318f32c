# The guest program: generated seccomp filter, static link, and its bytes inside the library.

barchan_find(SECCOMP libseccomp libseccomp-dev)

# The filter, as C arrays; made by a program of the build machine.
function(barchan_seccomp_filter output)
  add_executable(barchan_seccomp_gen ${PROJECT_SOURCE_DIR}/core/cmake/seccomp_gen.c)
  target_compile_definitions(barchan_seccomp_gen PRIVATE _GNU_SOURCE)
  target_link_libraries(barchan_seccomp_gen PRIVATE barchan_warnings PkgConfig::SECCOMP)
  add_custom_command(OUTPUT ${output}
    COMMAND barchan_seccomp_gen ${output}.tmp
    COMMAND ${CMAKE_COMMAND} -E rename ${output}.tmp ${output}
    DEPENDS barchan_seccomp_gen
    COMMENT "Generating the seccomp filter" VERBATIM)
endfunction()

# A static program with no sanitizer and no library but libc. Small matters: every sandbox is a
# fork of it.
function(barchan_guest_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/core/guest
    ${PROJECT_SOURCE_DIR}/core ${CMAKE_CURRENT_BINARY_DIR})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_compile_options(${name} PRIVATE -Os -g0 -fPIE -fstack-protector-strong
    -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_link_options(${name} PRIVATE -static-pie -s
    -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack)
  target_link_libraries(${name} PRIVATE barchan_warnings)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME barchan-guest
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    POSITION_INDEPENDENT_CODE OFF) # -fPIE above; the shared library's -fPIC is not wanted
endfunction()

# Puts the program's bytes into a target, between two symbols (see embed_guest.c).
function(barchan_embed_guest target program)
  set(_source ${PROJECT_SOURCE_DIR}/core/sandbox/embed_guest.c)
  target_sources(${target} PRIVATE ${_source})
  set_source_files_properties(${_source} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_DEFINITIONS "BARCHAN_GUEST_FILE=\"${CMAKE_CURRENT_BINARY_DIR}/barchan-guest\""
    OBJECT_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/barchan-guest)
  add_dependencies(${target} ${program})
endfunction()
