# How tests are made and registered.
#
#   tmq_add_test(NAME name SOURCES file... [LIBS target...] [DEFINES macro[=value]...]
#                [DEPENDS target...] [LABELS label...] [TIMEOUT seconds] [SERIAL])
#     A cmocka program, built into <build>/tests and run by ctest under its name.
#
#   tmq_add_script_test(NAME name SCRIPT file.sh [ARGS argument...]
#                [LABELS label...] [TIMEOUT seconds] [SERIAL])
#     A shell script, run by ctest with sh (or bash, if its first line says so).
#
#   tmq_add_postgres_test(...), as tmq_add_test
#     A program that starts PostgreSQL (tests/support/postgres.h). In a build without libpq there is
#     no such program, and the test is counted as skipped.
#
#   tmq_add_postgres_script_test(...), as tmq_add_script_test
#     A script that needs a broker on PostgreSQL: the same of it.
#
# Every test runs in <build>/tests and finds the programs through TASKMQ_BIN (<build>/bin) and the
# tree through TASKMQ_SOURCE. Programs named by DEPENDS are built before the test program is.
# The default time limit is 300 seconds, sanitized 600: more than five times what the slowest test takes.
# A test that cannot run here, because the kernel or a program is missing, says so and exits with 77.
# SERIAL keeps a test from running beside others.

set(TASKMQ_TEST_TIMEOUT_S 300)
if(TASKMQ_SANITIZE)
    set(TASKMQ_TEST_TIMEOUT_S 600)
endif()

set(TASKMQ_TEST_ENVIRONMENT
    "TASKMQ_BIN=${PROJECT_BINARY_DIR}/bin"
    "TASKMQ_SOURCE=${PROJECT_SOURCE_DIR}"
    "XDG_CONFIG_HOME=${PROJECT_BINARY_DIR}/tests/config"
    "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:strict_string_checks=1"
    "LSAN_OPTIONS=print_suppressions=0:suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")

function(tmq_test_properties name labels timeout serial)
    if(NOT timeout)
        set(timeout ${TASKMQ_TEST_TIMEOUT_S})
    endif()
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "${TASKMQ_TEST_ENVIRONMENT}"
        LABELS "${labels}"
        TIMEOUT ${timeout}
        SKIP_RETURN_CODE 77
        RUN_SERIAL ${serial})
endfunction()

function(tmq_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "NAME;TIMEOUT"
        "SOURCES;LIBS;DEFINES;DEPENDS;LABELS")
    set(target test_${arg_NAME})
    add_executable(${target} ${arg_SOURCES})
    target_include_directories(${target} PRIVATE
        "${CMAKE_CURRENT_SOURCE_DIR}"
        "${PROJECT_SOURCE_DIR}/tests"
        "${PROJECT_SOURCE_DIR}/proto"
        "${PROJECT_SOURCE_DIR}/broker"
        "${PROJECT_SOURCE_DIR}/libclient/include")
    target_compile_definitions(${target} PRIVATE ${arg_DEFINES})
    target_link_libraries(${target} PRIVATE ${arg_LIBS} PkgConfig::CMOCKA Threads::Threads)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    if(arg_DEPENDS)
        add_dependencies(${target} ${arg_DEPENDS})
    endif()
    add_test(NAME ${arg_NAME} COMMAND ${target} WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    tmq_test_properties(${arg_NAME} "${arg_LABELS}" "${arg_TIMEOUT}" "${arg_SERIAL}")
endfunction()

function(tmq_add_script_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "NAME;SCRIPT;TIMEOUT" "ARGS;LABELS")
    cmake_path(ABSOLUTE_PATH arg_SCRIPT NORMALIZE OUTPUT_VARIABLE script)
    file(STRINGS "${script}" first_line LIMIT_COUNT 1)
    if(first_line MATCHES "bash")
        set(shell bash)
    else()
        set(shell sh)
    endif()
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    add_test(NAME ${arg_NAME} COMMAND ${shell} "${script}" ${arg_ARGS}
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    tmq_test_properties(${arg_NAME} "${arg_LABELS}" "${arg_TIMEOUT}" "${arg_SERIAL}")
endfunction()

function(tmq_add_postgres_test)
    if(LIBPQ_FOUND)
        tmq_add_test(${ARGN})
    else()
        tmq_add_skipped_test(${ARGN})
    endif()
endfunction()

function(tmq_add_postgres_script_test)
    if(LIBPQ_FOUND)
        tmq_add_script_test(${ARGN})
    else()
        tmq_add_skipped_test(${ARGN})
    endif()
endfunction()

# In the place of a test that needs libpq: counted, and skipped.
function(tmq_add_skipped_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "NAME;SCRIPT;TIMEOUT"
        "SOURCES;LIBS;DEFINES;DEPENDS;ARGS;LABELS")
    tmq_add_script_test(NAME ${arg_NAME} LABELS ${arg_LABELS}
        SCRIPT "${PROJECT_SOURCE_DIR}/tests/support/postgres.sh" ARGS built)
endfunction()

# A case of a suite of attacks, tests/SUITE/SUITE.py. percent: how much of its amounts; sanitizers
# get a fifth.
function(tmq_add_attack suite name percent)
    set(options --percent ${percent})
    if(TASKMQ_SANITIZE)
        math(EXPR percent "(${percent} + 4) / 5")
        set(options --percent ${percent} --sanitized)
    endif()
    tmq_add_script_test(NAME ${suite}.${name} SCRIPT ../interop/run.sh
        ARGS ../${suite}/${suite}.py ${name} ${options} LABELS ${suite})
endfunction()
