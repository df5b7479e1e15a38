# Library headers that take longer to read than the code that includes them takes to compile, in targets with
# many such files: SimGrid 1.6 s, CLI11 2.5 s, spdlog 2.5 s each time (GCC 12).
target_precompile_headers(tessera_sim_engine PRIVATE <simgrid/s4u.hpp>)
if(TARGET tessera)
  target_precompile_headers(tessera PRIVATE <CLI/CLI.hpp> <spdlog/spdlog.h>)
endif()
