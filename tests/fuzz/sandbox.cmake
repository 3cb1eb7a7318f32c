# Both ends of a sandbox's channel. The library's end is compiled once more with all it stands on,
# except for what starts real sandboxes.
set(core ${PROJECT_SOURCE_DIR}/core)
set(host_sources ${core}/channel/channel.c)
foreach(name buf error json_scan json_view json_write options random utf8)
  list(APPEND host_sources ${core}/base/${name}.c)
endforeach()
foreach(name cancel child loop posts reader residents sigpipe timer watch)
  list(APPEND host_sources ${core}/runtime/${name}.c)
endforeach()
foreach(name apply_memory ask backend_command backend_namespace connect create exec exec_control exec_input exec_output exec_request
        files files_list files_request files_wait held_dir held_network launcher lease limits mounts process_list
        profile sandbox secrets start status stream template_list template_manifest template_tree template_use templates usage
        wire)
  list(APPEND host_sources ${core}/sandbox/${name}.c)
endforeach()
get_target_property(egress_sources barchan_core_objects SOURCES)
list(FILTER egress_sources INCLUDE REGEX "/core/egress/")
list(APPEND host_sources ${egress_sources})
barchan_fuzz_target(channel channel fuzz_channel.c ${host_sources})
target_link_libraries(fuzz_channel PRIVATE PkgConfig::UV PkgConfig::CARES PkgConfig::SSL Threads::Threads)

# The holder of a detached sandbox between both ends.
foreach(name hold hold_check hold_client hold_follow hold_log hold_network hold_relay)
  list(APPEND host_sources ${core}/sandbox/${name}.c)
endforeach()
barchan_fuzz_target(hold hold fuzz_hold.c ${host_sources})
target_link_libraries(fuzz_hold PRIVATE PkgConfig::UV PkgConfig::CARES PkgConfig::SSL Threads::Threads)

# What a guest sends for a snapshot.
barchan_fuzz_target(unpack unpack fuzz_unpack.c ${core}/base/buf.c ${core}/base/error.c
  ${core}/sandbox/template_tree.c ${core}/sandbox/unpack.c)
target_link_libraries(fuzz_unpack PRIVATE PkgConfig::UV)

# Process 1's end: its loop's parts on a pretended system, with a heap that can be counted.
set(guest_sources)
foreach(name ask carry exec exec_end file job output queue quiet send)
  list(APPEND guest_sources ${core}/guest/${name}.c)
endforeach()
set_source_files_properties(fuzz_guest.c ${guest_sources} PROPERTIES COMPILE_DEFINITIONS
  "BARCHAN_FAKE_SYSTEM;malloc=guest_malloc;calloc=guest_calloc;realloc=guest_realloc;free=guest_free")
barchan_fuzz_target(guest guest fuzz_guest.c guest_fake.c ${guest_sources})
target_include_directories(fuzz_guest PRIVATE ${core}/guest)
