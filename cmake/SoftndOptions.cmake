# SPDX-License-Identifier: MIT
# Warnings, sanitizers, coverage, and the two helpers every folder uses.

option(SOFTND_WERROR "Treat warnings as errors" ON)
option(SOFTND_COVERAGE "Instrument for line coverage" OFF)
set(SOFTND_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_library(sn_flags INTERFACE)
target_compile_options(sn_flags INTERFACE -Wall -Wextra -Wno-unused-parameter
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
    $<$<BOOL:${SOFTND_WERROR}>:-Werror>)
target_include_directories(sn_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(NOT WIN32)
    # The Win32 subset that stands in for <windows.h> and friends.
    target_include_directories(sn_flags INTERFACE ${CMAKE_SOURCE_DIR}/include/win32)
    target_compile_definitions(sn_flags INTERFACE _GNU_SOURCE)
    target_link_libraries(sn_flags INTERFACE pthread dl)
else()
    # Windows 10 1703 and later. The compiler's own library is linked in: no DLL but the system's.
    # LEAN: what <windows.h> brings without it takes two thirds of the time to compile a file.
    target_compile_definitions(sn_flags INTERFACE _WIN32_WINNT=0x0A00 NTDDI_VERSION=0x0A000002
        WIN32_LEAN_AND_MEAN __USE_MINGW_ANSI_STDIO=1)
    target_link_options(sn_flags INTERFACE -static)
    target_link_libraries(sn_flags INTERFACE ws2_32 iphlpapi advapi32 bcrypt ntdll synchronization winmm)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR SOFTND_SANITIZE)
    target_compile_definitions(sn_flags INTERFACE SN_DEBUG_CHECKS)
endif()
if(SOFTND_SANITIZE)
    target_compile_options(sn_flags INTERFACE -fsanitize=${SOFTND_SANITIZE}
        -fno-omit-frame-pointer -fno-sanitize-recover=all
        # COM objects made in C have no C++ type information.
        $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
    target_link_options(sn_flags INTERFACE -fsanitize=${SOFTND_SANITIZE})
endif()
if(SOFTND_COVERAGE)
    target_link_options(sn_flags INTERFACE --coverage)
endif()

# softnd_covered(target): count the lines of src/, and of src/ alone, for tests that count their own
# only take longer. Threads count together: without atomic updates counts get lost, or even negative.
function(softnd_covered target)
    if(SOFTND_COVERAGE)
        target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
    endif()
endfunction()

# softnd_layer(name SOURCES...): one object library per source folder.
function(softnd_layer name)
    add_library(${name} OBJECT ${ARGN})
    target_link_libraries(${name} PUBLIC sn_flags)
    softnd_covered(${name})
endfunction()

# softnd_test(name LABEL label SOURCES s... [LIBS l...] [TIMEOUT s] [ARGS a...])
# One test program; exit 0 passes, 77 skips, anything else fails. On Windows it has the label wine, too.
function(softnd_test name)
    cmake_parse_arguments(T "" "LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 120)
    endif()
    if(WIN32)
        list(APPEND T_LABEL wine)
    endif()
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE sn_flags ${T_LIBS})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    if(WIN32)
        target_compile_definitions(${name} PRIVATE COBJMACROS)
        target_link_libraries(${name} PRIVATE pthread)
    endif()
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABEL}" SKIP_RETURN_CODE 77
        TIMEOUT ${T_TIMEOUT})
endfunction()
