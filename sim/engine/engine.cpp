#include "sim/engine/engine.h"

#include <numeric>
#include <vector>

#include "sim/engine/program_check.h"
#include "sim/engine/simulation.h"

namespace tessera {

Timeline simulate(const TimedProgram& program) {
  check_program(program);
  std::vector<int> ranks(static_cast<std::size_t>(program.program.layout.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Simulation(program).run(ranks);
}

}  // namespace tessera
