# SPDX-License-Identifier: MIT
# The provider: one library made of all layers. softnd_internal is the same objects as a static
# archive with everything visible, for unit tests.
set(SN_LAYERS ${SN_CORE_OBJECTS} $<TARGET_OBJECTS:sn_ndspi>)
if(NOT WIN32)
    list(APPEND SN_LAYERS $<TARGET_OBJECTS:sn_winapi>)
endif()

add_library(softnd_internal STATIC ${SN_LAYERS})
target_link_libraries(softnd_internal PUBLIC sn_flags)
set_target_properties(softnd_internal PROPERTIES LINKER_LANGUAGE C)

add_library(softnd SHARED ${SN_LAYERS})
target_link_libraries(softnd PUBLIC sn_flags)
set_target_properties(softnd PROPERTIES LINKER_LANGUAGE C)
if(WIN32)
    target_sources(softnd PRIVATE ${SN_PACKAGING}/softnd.def)
    softnd_version_resource(softnd softnd.dll "SoftND NetworkDirect provider")
    set_target_properties(softnd PROPERTIES PREFIX "")
endif()
