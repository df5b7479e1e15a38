// tessera snapshot read: what torch.cuda.memory recorded, alone or beside a simulated step.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights.h"
#include "sim/config/files/text_file.h"
#include "sim/config/load.h"
#include "sim/formats/input_file.h"
#include "sim/formats/snapshot/snapshot_comparison.h"
#include "sim/formats/snapshot/step_snapshot.h"
#include "sim/plan/plan.h"

namespace tessera {
namespace {

struct SnapshotCommand {
  std::string file;
  std::string scenario;
  std::vector<std::string> overrides;
  std::string format;
  int device = -1;  ///< -1: the one with most events, then with most memory
  int stage = -1;   ///< -1: the fullest
};

/// Of a rank's process the one that it computes on: others may hold what was loaded there by
/// mistake.
int busiest(const std::vector<MemorySnapshot>& devices) {
  const auto most = std::ranges::max_element(devices, {}, [](const MemorySnapshot& device) {
    return std::pair(device.events.size(), device.segments.size());
  });
  return static_cast<int>(most - devices.begin());
}

const MemorySnapshot& chosen(const std::vector<MemorySnapshot>& devices,
                             const SnapshotCommand& command) {
  const auto device =
      static_cast<std::size_t>(command.device < 0 ? busiest(devices) : command.device);
  const bool is_there = device < devices.size();
  const bool is_empty =
      is_there && devices[device].segments.empty() && devices[device].events.empty();
  if (command.device < 0 && (!is_there || is_empty))
    throw InputError({shown_path(command.file), "holds no memory of any device",
                      "record with torch.cuda.memory._record_memory_history()"});
  if (is_there) return devices[device];
  throw InputError({"--device",
                    std::to_string(command.device) + ": " + shown_path(command.file) +
                        " has devices 0 to " + std::to_string(devices.size() - 1),
                    "name one of them"});
}

SnapshotPeak simulated_peak(const SnapshotCommand& command) {
  const Scenario scenario = load_scenario(command.scenario, command.overrides, shipped_catalog());
  const TimedProgram timed = plan_step(scenario, shipped_weights());
  const int stages = static_cast<int>(timed.program.stages.size());
  if (command.stage >= stages)
    throw InputError({"--stage",
                      std::to_string(command.stage) + ": the scenario has " +
                          std::to_string(stages) + " pipeline stages",
                      "name one from 0 on, or leave it out for the fullest"});
  return peak_of(snapshot_of_step(timed, command.stage < 0 ? fullest_stage(timed) : command.stage));
}

void run_read(const SnapshotCommand& command) {
  const std::vector<MemorySnapshot> devices =
      read_memory_snapshot(read_input_file(command.file), shown_path(command.file));
  const MemorySnapshot& snapshot = chosen(devices, command);
  const SnapshotPeak measured = peak_of(snapshot);
  const bool as_json = command.format == "json";
  if (command.scenario.empty())
    return print(as_json ? json_text(measured, nullptr)
                         : for_people(table_text(measured, snapshot)));
  const SnapshotPeak simulated = simulated_peak(command);
  print(as_json ? json_text(measured, &simulated)
                : for_people(table_text(SnapshotComparison{measured, simulated})));
}

}  // namespace

void add_snapshot_command(CLI::App& app) {
  CLI::App* snapshot =
      app.add_subcommand("snapshot", "Read memory snapshots of PyTorch (torch.cuda.memory)");
  snapshot->require_subcommand(1);
  auto options = std::make_shared<SnapshotCommand>();
  CLI::App* read = snapshot->add_subcommand(
      "read", "What held memory at the peak, alone or beside a simulated step");
  read->add_option("FILE", options->file,
                   "of torch.cuda.memory._dump_snapshot; nothing in it is run")
      ->required();
  read->add_option("--scenario", options->scenario, "the step that was recorded");
  add_set_option(*read, options->overrides);
  read->add_option("--device", options->device, "of several; the one that did most")
      ->check(CLI::Range(0, 1023));
  read->add_option("--stage", options->stage, "pipeline stage; the fullest")
      ->check(CLI::Range(0, 100000));
  add_format_option(*read, options->format, {"table", "json"});
  read->callback([options] { run_read(*options); });
}

}  // namespace tessera
