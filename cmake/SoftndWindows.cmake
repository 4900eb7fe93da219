# SPDX-License-Identifier: MIT
# What only Windows needs: version resources.
enable_language(RC)
set(SN_PACKAGING ${CMAKE_SOURCE_DIR}/packaging/windows)

# softnd_version_resource(target file text): a version resource; a program gets the manifest too.
function(softnd_version_resource target file text)
    set(RC_FILE ${file})
    set(RC_TEXT ${text})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
        set(RC_TYPE VFT_APP)
        set(RC_MORE "1 24 \"${SN_PACKAGING}/softnd.manifest\"")
    else()
        set(RC_TYPE VFT_DLL)
        set(RC_MORE "")
    endif()
    set(rc ${CMAKE_BINARY_DIR}/resources/${target}.rc)
    configure_file(${SN_PACKAGING}/version.rc.in ${rc} @ONLY)
    set_source_files_properties(${rc} PROPERTIES OBJECT_DEPENDS ${SN_PACKAGING}/softnd.manifest)
    target_sources(${target} PRIVATE ${rc})
endfunction()
