# tmq_protobuf_c(TARGET FILE.proto): an OBJECT library of the C code that protoc-c makes of FILE.proto
# (a path relative to the calling directory).
#
# The code is generated into the build tree and never committed. Whoever links TARGET sees its headers
# as system headers, because their warnings are not ours to mend; the symbols stay hidden inside
# whatever library they end up in.
function(tmq_protobuf_c target proto_file)
    cmake_path(ABSOLUTE_PATH proto_file NORMALIZE OUTPUT_VARIABLE proto_path)
    cmake_path(GET proto_path PARENT_PATH proto_dir)
    cmake_path(GET proto_path STEM proto_stem)
    set(generated_dir "${CMAKE_CURRENT_BINARY_DIR}/${target}.generated")
    set(generated_c "${generated_dir}/${proto_stem}.pb-c.c")
    set(generated_h "${generated_dir}/${proto_stem}.pb-c.h")

    # descriptor.proto, for the options of protobuf-c, comes with libprotobuf-dev in /usr/include.
    file(MAKE_DIRECTORY "${generated_dir}")
    add_custom_command(
        OUTPUT "${generated_c}" "${generated_h}"
        COMMAND "${PROTOC_C}" -I "${proto_dir}" -I /usr/include --c_out=${generated_dir}
            "${proto_path}"
        DEPENDS "${proto_path}"
        COMMENT "Generating ${proto_stem}.pb-c.c"
        VERBATIM)

    add_library(${target} OBJECT "${generated_c}" "${generated_h}")
    target_compile_options(${target} PRIVATE -w)
    target_include_directories(${target} SYSTEM PUBLIC "${generated_dir}")
    target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        C_VISIBILITY_PRESET hidden
        C_CLANG_TIDY ""
        EXPORT_COMPILE_COMMANDS OFF)
endfunction()
