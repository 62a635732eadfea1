# The language and the warnings, the same for every room.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 11)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# An assert guards against our own mistakes and stays on in every build: no NDEBUG anywhere.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2")

add_compile_definitions(_GNU_SOURCE)

add_compile_options(
    "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wstrict-prototypes>")
if(TASKMQ_WERROR)
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-Werror>")
endif()

if(TASKMQ_SANITIZE STREQUAL "address+undefined")
    set(sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(TASKMQ_SANITIZE STREQUAL "thread")
    set(sanitize_flags -fsanitize=thread)
elseif(NOT TASKMQ_SANITIZE STREQUAL "")
    message(FATAL_ERROR "TASKMQ_SANITIZE is '${TASKMQ_SANITIZE}': "
        "it must be empty, address+undefined or thread")
endif()
if(sanitize_flags)
    add_compile_options(${sanitize_flags} -fno-omit-frame-pointer)
    add_link_options(${sanitize_flags})
endif()
