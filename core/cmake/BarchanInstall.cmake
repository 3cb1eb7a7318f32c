# Libraries that are installed, with pkg-config files and a CMake package.

include(CMakePackageConfigHelpers)

# barchan_add_libraries(NAME FILE OBJECTS...): barchan_NAME (shared) and barchan_NAME_static, known as
# barchan::NAME and barchan::NAME_static here and to users of the installed package.
function(barchan_add_libraries name file)
  foreach(suffix "" _static)
    set(target barchan_${name}${suffix})
    set(kind SHARED)
    if(suffix)
      set(kind STATIC)
    endif()
    add_library(${target} ${kind} ${ARGN})
    add_library(barchan::${name}${suffix} ALIAS ${target})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${file} EXPORT_NAME ${name}${suffix} LINKER_LANGUAGE C)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:barchan_build>
      PkgConfig::UV PkgConfig::CURL PkgConfig::JANSSON PkgConfig::CARES PkgConfig::SSL Threads::Threads m)
    target_include_directories(${target} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    install(TARGETS ${target} EXPORT barchanTargets
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endforeach()
  set(map ${PROJECT_SOURCE_DIR}/core/cmake/exports.map)
  set_target_properties(barchan_${name} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
  target_link_options(barchan_${name} PRIVATE -Wl,--version-script=${map} -Wl,-z,relro,-z,now)
endfunction()

# Writes NAME.pc. `private` is what a static link of the archive needs too: libraries and not modules,
# because libcurl's own private modules would ask for a dozen development packages more.
function(barchan_pkg_config name description private)
  set(BARCHAN_PC_NAME ${name})
  set(BARCHAN_PC_DESCRIPTION ${description})
  set(BARCHAN_PC_PRIVATE ${private})
  # Relative, so that the installed tree can be moved.
  file(RELATIVE_PATH BARCHAN_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/core/cmake/barchan.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# A page whose links lead to what is installed; those to what is in the source only become plain words.
function(barchan_install_page page)
  get_filename_component(name ${page} NAME)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${page})
  file(RELATIVE_PATH data ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_DATADIR}/barchan)
  file(READ ${PROJECT_SOURCE_DIR}/${page} text)
  string(REPLACE "](.github/" "](" text "${text}")
  string(REPLACE "](scripts" "](${data}/scripts" text "${text}")
  string(REPLACE "](bindings/lua/meta)" "](${data}/meta)" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(core|bindings|examples|tests)[^)]*\\)" "\\1" text "${text}")
  file(WRITE ${PROJECT_BINARY_DIR}/doc/${name} "${text}")
  install(FILES ${PROJECT_BINARY_DIR}/doc/${name} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()

function(barchan_install_package)
  barchan_pkg_config(barchan-core "Sandboxes and model providers for language models"
    "-luv -lcurl -ljansson -lcares -lssl -lcrypto")
  barchan_pkg_config(barchan "The Barchan engine: sandboxes, model providers and Lua agents"
    "-luv -lcurl -ljansson -lcares -lssl -lcrypto -llua5.4-cjson -llua5.4")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  barchan_install_page(README.md)
  barchan_install_page(.github/SECURITY.md)
  # To read and to copy; the libraries have their own embedded. The types are for editors.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts DESTINATION ${CMAKE_INSTALL_DATADIR}/barchan)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/lua/meta DESTINATION ${CMAKE_INSTALL_DATADIR}/barchan
    PATTERN README.md EXCLUDE)
  set(where ${CMAKE_INSTALL_LIBDIR}/cmake/barchan)
  install(EXPORT barchanTargets NAMESPACE barchan:: DESTINATION ${where})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/core/cmake/barchanConfig.cmake.in
    ${PROJECT_BINARY_DIR}/barchanConfig.cmake INSTALL_DESTINATION ${where})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/barchanConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/barchanConfig.cmake
    ${PROJECT_BINARY_DIR}/barchanConfigVersion.cmake DESTINATION ${where})
endfunction()
