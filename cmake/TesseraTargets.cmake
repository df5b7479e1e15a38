# One folder = one target. `sim/plan` becomes the target tessera_sim_plan from the sources that lie in that folder
# (sub-folders included, unless they are targets of their own), with includes written from the root.

set(TESSERA_NESTED_TARGETS hw/units sim/collectives sim/scenario sim/config sim/plan sim/trace sim/engine sim/simgrid sim/remat
    sim/report sim/formats sim/process sim/reliability sim/longrun app/import app/explain app/html app/sweep app/search app/fit app/serve
    app/shell app/cli lab/fit lab/predict lab/validate lab/cli)

function(tessera_target_name folder result)
  string(REPLACE "/" "_" name "tessera/${folder}")
  set(${result} ${name} PARENT_SCOPE)
endfunction()

function(tessera_sources folder result)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  foreach(nested IN LISTS TESSERA_NESTED_TARGETS)
    if(NOT folder MATCHES "^(tests/)?${nested}$")
      list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/(tests/)?${nested}/")
    endif()
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# Release builds compile several sources at a time, because reading the libraries' headers and instantiating their templates
# takes most of the time: all of a target of the product, which needs 0.6 of the CPU time that it needs with eight; eight of the
# laboratory and the tests, which name their internals more freely. The laboratory's fits all name them alike, so
# their sources stay apart; so do all in the other presets, where one source at a time is changed.
set(TESSERA_VARIANT_FOLDERS lab/fit)

function(tessera_unity_build target folder)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  endif()
  set(batch 0)  # no limit
  if(folder MATCHES "^(lab|tests)/")
    set(batch 8)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  get_target_property(sources ${target} SOURCES)
  list(JOIN TESSERA_VARIANT_FOLDERS "|" variants)
  list(FILTER sources INCLUDE REGEX "^${CMAKE_SOURCE_DIR}/(${variants})/")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(tessera_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -Wno-missing-field-initializers)  # options structs have documented defaults
  if(TESSERA_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(tessera_link target)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  foreach(folder IN LISTS ARG_DEPENDS)
    tessera_target_name(${folder} dependency)
    target_link_libraries(${target} PUBLIC ${dependency})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LIBRARIES})
endfunction()

function(tessera_empty_source target result)
  set(source ${CMAKE_BINARY_DIR}/empty/${target}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "namespace {}\n")
  set(${result} ${source} PARENT_SCOPE)
endfunction()

function(tessera_library folder)
  tessera_target_name(${folder} target)
  tessera_sources(${folder} sources)
  if(NOT sources)
    # Headers alone: CMake wants a source all the same.
    tessera_empty_source(${target} sources)
  endif()
  add_library(${target} STATIC ${sources})
  tessera_unity_build(${target} ${folder})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  tessera_compile_options(${target})
  tessera_link(${target} ${ARGN})
endfunction()

# sim/simgrid as a module that programs load when a step needs it (docs/decisions/0101-simgrid-in-a-module.md), from lib/tessera
# beside their folder, as in an installation; tests in other folders find it over their run path.
set(TESSERA_MODULE_FOLDER lib/tessera)
set(CMAKE_BUILD_RPATH $ORIGIN/../${TESSERA_MODULE_FOLDER} ${CMAKE_BINARY_DIR}/${TESSERA_MODULE_FOLDER})
set(CMAKE_INSTALL_RPATH $ORIGIN/../${TESSERA_MODULE_FOLDER})

function(tessera_simgrid_module)
  set_target_properties(tessera_sim_simgrid PROPERTIES POSITION_INDEPENDENT_CODE ON)
  tessera_empty_source(tessera-simgrid source)
  add_library(tessera-simgrid MODULE ${source})
  target_link_libraries(tessera-simgrid PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,tessera_sim_simgrid>")
  set_target_properties(tessera-simgrid PROPERTIES PREFIX "" LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${TESSERA_MODULE_FOLDER}
    BUILD_RPATH $ORIGIN/stand-ins INSTALL_RPATH $ORIGIN/stand-ins)
  # An RPATH, unlike a RUNPATH, holds for what libraries of the module load.
  target_link_options(tessera-simgrid PRIVATE -Wl,--disable-new-dtags)
  add_custom_command(TARGET tessera-simgrid POST_BUILD VERBATIM
    COMMAND ${TESSERA_PYTHON} -B ${CMAKE_SOURCE_DIR}/packaging/libraries.py $<TARGET_FILE:tessera-simgrid>
            ${CMAKE_BINARY_DIR}/${TESSERA_MODULE_FOLDER}/stand-ins)
  # What crosses between the two is C++, so both are of one version.
  target_compile_definitions(tessera_sim_simgrid PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
  target_compile_definitions(tessera_sim_engine PRIVATE TESSERA_SIMGRID_MODULE="tessera-simgrid.so"
    TESSERA_VERSION="${PROJECT_VERSION}")
endfunction()

# Apache ECharts in one script, by npm as the lock file in app/html/charts says; empty without npm (option TESSERA_CHARTS).
function(tessera_chart_library result)
  string(TOLOWER "${TESSERA_CHARTS}" mode)
  set(folder ${CMAKE_BINARY_DIR}/generated/app/html/charts)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/app/html)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/app/html/charts/*)
  add_custom_command(
    OUTPUT ${folder}.js
    COMMAND ${TESSERA_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/bundle_charts ${mode} ${folder} ${folder}.js
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/bundle_charts ${sources}
    COMMENT "Chart library of HTML reports"
    VERBATIM)
  set(${result} ${folder}.js PARENT_SCOPE)
endfunction()

# The page of HTML reports (style, then scripts) and its chart library as a source of the target of `folder`.
function(tessera_embedded_page folder)
  tessera_target_name(${folder} target)
  tessera_chart_library(library)
  set(files ${ARGN})
  list(TRANSFORM files PREPEND ${CMAKE_SOURCE_DIR}/)
  set(generated ${CMAKE_BINARY_DIR}/generated/${folder}/page_source.cpp)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/${folder})
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${TESSERA_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/embed_page ${generated} ${library} ${files}
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/embed_page ${library} ${files}
    VERBATIM)
  target_sources(${target} PRIVATE ${generated})
endfunction()

function(tessera_executable name folder)
  tessera_sources(${folder} sources)
  if(sources)
    add_executable(${name} ${sources})
    tessera_unity_build(${name} ${folder})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    tessera_compile_options(${name})
    target_compile_definitions(${name} PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
    tessera_link(${name} ${ARGN})
    add_dependencies(${name} tessera-simgrid)
  endif()
endfunction()

# Compiles .proto files (paths from the root) into the target of `folder`; they are included as "<path>.pb.h".
function(tessera_protobuf folder)
  tessera_target_name(${folder} target)
  foreach(proto IN LISTS ARGN)
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${proto})
      continue()
    endif()
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(generated ${CMAKE_BINARY_DIR}/generated/${stem}.pb.cc ${CMAKE_BINARY_DIR}/generated/${stem}.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc --cpp_out=${CMAKE_BINARY_DIR}/generated --proto_path=${CMAKE_SOURCE_DIR}
              ${CMAKE_SOURCE_DIR}/${proto}
      DEPENDS ${CMAKE_SOURCE_DIR}/${proto}
      VERBATIM)
    set_source_files_properties(${generated} PROPERTIES GENERATED ON COMPILE_OPTIONS "-w")
    target_sources(${target} PRIVATE ${generated})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
endfunction()

# The C++ values of the schema, which all targets see: members of structs (configs/schema/fields), enumerators and their words
# (configs/schema/words), and configs/schema/mirror.h, which visits fields by name. `folder` is the lowest target.
function(tessera_schema_values folder proto)
  cmake_parse_arguments(ARG "" "" "INCLUDES" ${ARGN})
  tessera_target_name(${folder} target)
  list(JOIN ARG_INCLUDES "," includes)
  set(output ${CMAKE_BINARY_DIR}/generated/configs/schema)
  set(generated ${output}/mirror.h)
  file(GLOB schema CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/configs/schema/*.proto)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema})
  foreach(file IN LISTS schema)
    file(STRINGS ${file} lines REGEX "mirrors: |mirrored_by: ")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE ".*(mirrors|mirrored_by): \"([A-Za-z0-9]+)\".*" "\\2" value "${line}")
      string(REGEX REPLACE "([a-z0-9])([A-Z])" "\\1_\\2" value ${value})
      string(TOLOWER ${value} value)
      if(NOT line MATCHES "\\(words\\)")
        list(APPEND generated ${output}/fields/${value}.inc)
      elseif(NOT line MATCHES "by_hand")
        list(APPEND generated ${output}/words/${value}.inc ${output}/words/${value}_names.inc)
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES generated)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${TESSERA_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/schema_values $<TARGET_FILE:protobuf::protoc>
            ${CMAKE_SOURCE_DIR} ${output} ${includes} ${proto}
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/schema_values ${schema}
    VERBATIM)
  target_sources(${target} PRIVATE ${generated})
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
endfunction()

# Compiles the headers that every test includes once, for all test programs.
function(tessera_test_headers)
  tessera_empty_source(tessera_test_headers source)
  add_executable(tessera_test_headers ${source})
  tessera_compile_options(tessera_test_headers)
  target_link_libraries(tessera_test_headers PRIVATE GTest::gmock GTest::gtest_main)
  target_precompile_headers(tessera_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fstream> <string> <vector>)
endfunction()

# tests/<folder>/*.cpp become one GoogleTest program; ctest runs every test in a process of its own
# (SimGrid allows one simulation per process).
function(tessera_test folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;LABELS" ${ARGN})
  string(REPLACE "/" "_" name "test/${folder}")
  tessera_sources(tests/${folder} sources)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  tessera_compile_options(${name})
  tessera_link(${name} DEPENDS ${ARG_DEPENDS} LIBRARIES ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TESSERA_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${name} tessera-simgrid)
  target_precompile_headers(${name} REUSE_FROM tessera_test_headers)
  set(properties TIMEOUT 300)
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       PROPERTIES ${properties})
endfunction()

# tests/<script>.py, a unittest program, as one test.
function(tessera_python_test script)
  add_test(NAME ${script} COMMAND ${TESSERA_PYTHON} -B ${CMAKE_SOURCE_DIR}/tests/${script}.py)
endfunction()

# The same through the built program, whose path is in $TESSERA_PROGRAM; what they share lies in tests/end_to_end.
function(tessera_end_to_end_test name)
  tessera_python_test(end_to_end/${name})
  set_tests_properties(end_to_end/${name} PROPERTIES LABELS end_to_end TIMEOUT 300
                       ENVIRONMENT "TESSERA_PROGRAM=$<TARGET_FILE:tessera>;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/end_to_end")
endfunction()
