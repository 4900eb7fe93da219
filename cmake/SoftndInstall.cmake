# SPDX-License-Identifier: MIT
# What `make install` puts in place besides the targets that install themselves: the provider, the
# headers, and on Linux a pkg-config file.
install(TARGETS softnd)
install(DIRECTORY include/ DESTINATION include/softnd
    FILES_MATCHING PATTERN "*.h")
if(NOT WIN32)
    # Paths are relative to the file, so that the prefix may be chosen at install time.
    file(WRITE ${CMAKE_BINARY_DIR}/softnd.pc
"prefix=\${pcfiledir}/../..
Name: softnd
Description: NetworkDirect without the NIC
Version: ${PROJECT_VERSION}
Cflags: -I\${prefix}/include/softnd -I\${prefix}/include/softnd/win32
Libs: -L\${prefix}/lib -Wl,-rpath,\${prefix}/lib -lndutil -lsoftnd
")
    install(FILES ${CMAKE_BINARY_DIR}/softnd.pc DESTINATION lib/pkgconfig)
endif()
