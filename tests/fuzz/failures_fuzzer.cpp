// libFuzzer entry: whatever bytes a file of failures holds, reading gives a model that runs or an
// InputError.
#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/longrun/failure_file.h"
#include "sim/reliability/cluster_run.h"
#include "tests/fuzz/input_file.h"

namespace {

/// Two days on four nodes; days without end by rates beyond reason are left out.
void run_days(const tessera::FailureModel& model) {
  tessera::RunPlan plan;
  plan.nodes = 4;
  plan.length = tessera::days_of(2);
  plan.interval = tessera::to_micros(tessera::Seconds(3600));
  plan.failures = model;
  double events = 0;
  for (const tessera::FailureClass& of : model.classes) events += of.per_node_day * plan.nodes;
  if (events > 1000) return;
  const tessera::RunRecord record = tessera::simulate_run(plan, 1);
  if (record.accounted() != record.wall) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".yaml");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  try {
    run_days(tessera::read_failures(file, 8));
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
