# What people install without building: `make package` leaves a .deb and a .tar.gz in build/packages.
# Both hold the program, its manual page and what a licence asks for; the program needs the C library
# alone. The CUDA plugin belongs to the machine whose toolkit made it, and is not among them.

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # neither packing nor installing compiles tests
install(TARGETS tidemark COMPONENT program)
install(FILES docs/tidemark.1 DESTINATION share/man/man1 COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/tidemark COMPONENT program)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};tidemark;program;/")  # one component
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_NAME tidemark)
set(CPACK_PACKAGE_FILE_NAME tidemark-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)  # tidemark_0.1.0_amd64.deb
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Tidemark")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35)")      # the newest of the symbols that are used
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libopenblas0)        # tidemark replay --backend cpu
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libglfw3, libgl1, fonts-dejavu-core")  # tidemark view
include(CPack)
