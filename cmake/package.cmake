# What people install. `cmake --install build` takes build/tidemark and its CUDA plugin, for this
# machine. `make package` leaves a .deb and a .tar.gz in build/packages for machines that build
# nothing: they hold tidemark_alone, the same program with the C++ library within, which needs the C
# library alone. It takes no plugin, because exceptions cannot pass between two C++ libraries.

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # neither packing nor installing compiles tests
install(TARGETS tidemark)
install(FILES docs/tidemark.1 DESTINATION share/man/man1)
if(TIDEMARK_SANITIZE)  # a sanitizer's libraries come from the machine
  return()
endif()

add_executable(tidemark_alone cli/main.cpp)
set_target_properties(tidemark_alone PROPERTIES
  OUTPUT_NAME tidemark RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/alone)
target_link_libraries(tidemark_alone PRIVATE tidemark_cli_lib tidemark_warnings)
# Stripped, and without what nobody calls, whose needs would be the program's.
target_link_options(tidemark_alone PRIVATE -static-libstdc++ -static-libgcc -s -Wl,--gc-sections)
install(TARGETS tidemark_alone COMPONENT alone EXCLUDE_FROM_ALL)
install(TARGETS tidemark_alone DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
install(FILES docs/tidemark.1 DESTINATION share/man/man1 COMPONENT alone EXCLUDE_FROM_ALL)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/tidemark
        COMPONENT alone EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};tidemark;alone;/")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_NAME tidemark)
set(CPACK_PACKAGE_FILE_NAME tidemark-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)  # tidemark_0.1.0_amd64.deb
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Tidemark")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35)")      # the newest of the symbols that are used
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0)        # tidemark replay --backend cpu
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libglfw3, libgl1, fonts-dejavu-core")  # tidemark view
include(CPack)
