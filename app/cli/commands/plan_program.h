#pragma once

#include <optional>
#include <string>

#include "sim/remat/planner.h"

namespace tessera {

/// What a solver of integer programs said.
struct SolverAnswer {
  bool optimal = false;            ///< else infeasible or stopped
  std::string status;              ///< in the solver's words
  std::optional<double> overhead;  ///< least time over the base time, minus 1
};

/// Writes recomputation alone within the request's budget as an integer program: in LP format, or
/// in MPS where `file` ends in ".mps". Throws InputError where it cannot be written.
void write_program(const remat::Graph& graph, const remat::PlanRequest& request,
                   const std::string& file);

/// Runs COIN-OR's cbc on such a file. Throws InputError where it is not installed.
SolverAnswer solve_program(const std::string& file);

}  // namespace tessera
