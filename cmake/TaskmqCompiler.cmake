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
# The path of a library in the build tree is not part of a program: two trees make the same bytes.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# An assert guards against our own mistakes and stays on in every build: no NDEBUG anywhere.
# -O1: the simulation takes half as long; a sanitizer loses nothing, and a debugger little.
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
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
elseif(TASKMQ_SANITIZE STREQUAL "fuzz" AND TASKMQ_FUZZING_ENGINE)
    set(sanitize_flags -fno-sanitize-recover=all)
elseif(TASKMQ_SANITIZE STREQUAL "fuzz")
    add_compile_definitions(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) # as OSS-Fuzz does by itself
    set(sanitize_flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
elseif(NOT TASKMQ_SANITIZE STREQUAL "")
    message(FATAL_ERROR "TASKMQ_SANITIZE is '${TASKMQ_SANITIZE}': "
        "it must be empty, address+undefined, thread or fuzz")
endif()
if(sanitize_flags)
    add_compile_options(${sanitize_flags} -fno-omit-frame-pointer)
    add_link_options(${sanitize_flags})
endif()

# What a mistake in memory meets before it can be used. Compilers differ in what they know.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
        -ftrivial-auto-var-init=zero)
    string(MAKE_C_IDENTIFIER "TASKMQ_HAS${flag}" known)
    check_c_compiler_flag(${flag} ${known})
    if(${known})
        add_compile_options(${flag})
    endif()
endforeach()
add_compile_options(-Wformat -Werror=format-security)
# The checks of _FORTIFY_SOURCE need an optimizing compiler, and hide calls from the sanitizers.
if(NOT sanitize_flags)
    add_compile_options(
        "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code)

# Neither the tree's place nor that of the build is part of what is released. Later options win.
add_compile_options(
    "$<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.;-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>")
