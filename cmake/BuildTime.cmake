# What makes the first `./tessera` answer sooner. CPU seconds are of GCC 12.

# Headers that take longer to read than the code that includes them takes to compile, in targets with many such files:
# SimGrid 1.6 s, CLI11 2.5 s, spdlog 2.5 s, nlohmann's JSON 2.5 s, Eigen 1.4 s, Protobuf 1.3 s, the standard library's 0.8 s each time.
set(TESSERA_STANDARD_HEADERS <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <optional> <span>
    <string> <string_view> <utility> <vector>)
target_precompile_headers(tessera_lab_fit PRIVATE ${TESSERA_STANDARD_HEADERS} <Eigen/Dense>)
if(NOT CMAKE_BUILD_TYPE STREQUAL Release)  # there each of these is one unit and reads its headers once
  target_precompile_headers(tessera_workloads PRIVATE ${TESSERA_STANDARD_HEADERS})
  target_precompile_headers(tessera_predictor PRIVATE ${TESSERA_STANDARD_HEADERS})
  target_precompile_headers(tessera_sim_remat PRIVATE ${TESSERA_STANDARD_HEADERS})
  target_precompile_headers(tessera_sim_config PRIVATE ${TESSERA_STANDARD_HEADERS} <google/protobuf/message.h>)
endif()
# What writes answers shares its headers, and its optimization level, without which GCC does not take them.
set(TESSERA_ANSWERS tessera_sim_longrun tessera_app_explain tessera_app_html tessera_app_import tessera_app_sweep tessera_app_search
    tessera_app_fit tessera_app_expect tessera_app_neighbours tessera_lab_validate)
target_precompile_headers(tessera_sim_report PRIVATE ${TESSERA_STANDARD_HEADERS} <nlohmann/json.hpp>)
foreach(target ${TESSERA_ANSWERS})
  target_precompile_headers(${target} REUSE_FROM tessera_sim_report)
endforeach()
# GCC 12 sees strings overflow that do not (its bug 105651), and no longer knows <string> for a system header in there.
foreach(target tessera_sim_remat tessera_predictor tessera_lab_fit)
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
endforeach()

# Code that runs once per simulation or less, and is long because it puts texts together: it compiles in two thirds of the
# time with fewer optimizations. Model graphs are smallest and fastest to compile with -Os.
function(tessera_optimize_less option)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${option}>)
  endforeach()
endfunction()
tessera_optimize_less(-Os tessera_workloads)
tessera_optimize_less(-O1 tessera_hw tessera_sim_collectives tessera_sim_scenario tessera_sim_config tessera_sim_formats tessera_sim_report
    ${TESSERA_ANSWERS} tessera_app_serve tessera_app_shell)

# The commands of both programs.
target_precompile_headers(tessera_app_shell PRIVATE <CLI/CLI.hpp> <spdlog/spdlog.h>)
foreach(program tessera tessera-lab)
  target_precompile_headers(${program} REUSE_FROM tessera_app_shell)
  tessera_optimize_less(-O1 ${program})
endforeach()
