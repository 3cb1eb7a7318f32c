# What a sandbox's first bytes are read with, and the lists that people write.
set(egress_sources)
foreach(name address base64 client_hello host_name name_query policy policy_entry redactor registries
        registries_apt registries_npm registries_pip registry_files request_head request_stream
        charset response_stream secret_match secret_memory)
  list(APPEND egress_sources ${core}/egress/${name}.c)
endforeach()
foreach(name name_query client_hello request_head policy redactor registries)
  barchan_fuzz_target(egress_${name} egress_${name} fuzz_egress_${name}.c ${egress_sources} ${base_sources})
endforeach()

# The address table's spellings are seeds of the lists, one a file.
file(READ ${core}/egress/address_table.h table)
string(REGEX MATCHALL "\n +[LS]\\(\"[^\"\\\\]+\"" rows "${table}")
set(count 0)
foreach(row IN LISTS rows)
  string(REGEX REPLACE ".*\"([^\"]+)\"" "\\1" text "${row}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/corpus/egress_policy/address_${count} "${text}\n${text}\n")
  math(EXPR count "${count} + 1")
endforeach()
