#include "sim/engine/engine.h"

#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/errors/program_check.h"
#include "sim/engine/network/simgrid_module.h"
#include "sim/engine/simulation.h"

namespace tessera {

Timeline simulate(const TimedProgram& program) {
  check_program(program);
  Simulation simulation(program);
  return simulation.run(simulation.ranks());
}

Timeline simulate_without_memory_samples(const TimedProgram& program) {
  check_program(program);
  Simulation simulation(program, MemorySamples::peaks_only);
  return simulation.run(simulation.ranks());
}

bool simgrid_was_needed() {
  return simgrid_has_started();
}

void check_simulation(const TimedProgram& program) {
  check_program(program);
  const CommunicationPlan plan(program);
}

}  // namespace tessera
