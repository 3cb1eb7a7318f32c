# Everything comes from the distribution's packages; nothing is downloaded.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# barchan_find(NAME MODULE PACKAGE): an imported target PkgConfig::NAME, or a message that says
# which Debian package is missing.
function(barchan_find name module package)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${module} was not found. On Debian and Ubuntu: apt-get install ${package}")
  endif()
endfunction()

barchan_find(UV libuv libuv1-dev)
barchan_find(CURL libcurl libcurl4-openssl-dev)
barchan_find(JANSSON jansson libjansson-dev)
barchan_find(CARES libcares libc-ares-dev)
barchan_find(SSL openssl libssl-dev)
barchan_find(LUA lua5.4 liblua5.4-dev)
barchan_find(CJSON lua5.4-cjson lua-cjson-dev)
if(BARCHAN_TESTS)
  barchan_find(CHECK check check)
endif()
