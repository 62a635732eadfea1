# Every library from the system, as an imported target. What only one room needs is still found here,
# so that a missing package is reported once, at the start.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(SQLite3 3.40 REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq>=4.3.2)
if(ZMQ_VERSION VERSION_LESS 4.3.4)
    message(WARNING "libzmq ${ZMQ_VERSION} has known holes (CVE-2020-15166, CVE-2021-20234 to -20237 "
        "below 4.3.3), and the door was tried with 4.3.4 alone: see docs/SECURITY.md")
endif()
pkg_check_modules(CZMQ REQUIRED IMPORTED_TARGET libczmq>=4.2)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c>=1.4)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium>=1.0.18)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.4)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.40)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.14)
pkg_check_modules(SMARTCOLS REQUIRED IMPORTED_TARGET smartcols>=2.36)
pkg_check_modules(NCURSES REQUIRED IMPORTED_TARGET ncursesw>=6.3)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent_core>=2.1.12)
# Without it the broker has no store "postgresql", and says so.
pkg_check_modules(LIBPQ IMPORTED_TARGET libpq>=14)
# It comes without a file for pkg-config.
find_path(HTTP_PARSER_INCLUDE http_parser.h)
find_library(HTTP_PARSER_LIBRARY http_parser)
if(NOT HTTP_PARSER_INCLUDE OR NOT HTTP_PARSER_LIBRARY)
    message(FATAL_ERROR "http_parser is missing (Debian: libhttp-parser-dev)")
endif()
add_library(HttpParser INTERFACE IMPORTED)
target_include_directories(HttpParser SYSTEM INTERFACE "${HTTP_PARSER_INCLUDE}")
target_link_libraries(HttpParser INTERFACE "${HTTP_PARSER_LIBRARY}")
if(BUILD_TESTING)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka>=1.1.5)
endif()

find_program(PROTOC_C protoc-c REQUIRED)
