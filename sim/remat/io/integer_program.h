#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/remat/graph.h"

namespace tessera::remat {

/// Minimise `objective` over variables in [0, 1] subject to `rows`.
struct IntegerProgram {
  using Terms = std::vector<std::pair<int, double>>;  ///< variable, factor
  /// least <= sum of terms <= most; one of the two is infinite.
  struct Row {
    Terms terms;
    double least, most;
  };
  struct Variable {
    std::string name;
    bool integer = true;
    bool one = false;  ///< fixed to 1
  };
  std::vector<Variable> variables;
  Terms objective;  ///< besides a constant of 1: what runs again, over the base time
  std::vector<Row> rows;
};

/// Recomputation alone in program order within `budget` (with static bytes), after Checkmate (Jain
/// et al., MLSys 2020): r_t_i runs operator i in stage t, s_t_q keeps tensor q from stage t - 1 to
/// t, f_t_k_q frees tensor q behind operator k of stage t. Memory counts thousandths of what the
/// budget leaves beside static bytes. Two differences: what an operator makes can go at once where
/// nobody reads it, and workspaces count. An output that is there already counts twice to the end
/// of its stage where its operator runs again for another output, so the optimum is exact for
/// operators of one output.
IntegerProgram recompute_program(const Graph& graph, ByteCount budget);

/// In CPLEX's LP format, and in free MPS. The objective's constant is a variable `base` that is 1.
std::string lp_text(const IntegerProgram& program);
std::string mps_text(const IntegerProgram& program);

}  // namespace tessera::remat
