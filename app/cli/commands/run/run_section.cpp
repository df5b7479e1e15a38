#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

#include "app/cli/commands/run/run_options.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// What the section says, for options that the command line leaves out.
class Section {
 public:
  explicit Section(const std::set<std::string>& given) : given_(given) {}

  template <class Value>
  void fill(const char* option, const Value& value, Value& to) const {
    if (!given_.contains(option)) to = value;
  }
  /// A time or a rate as text; 0 stands for the option's own default.
  template <class Quantity>
  void fill_text(const char* option, Quantity value, std::string& to) const {
    if (!given_.contains(option) && value.value() > 0) to = to_text(value);
  }
  bool gives(const char* option) const { return given_.contains(option); }

 private:
  const std::set<std::string>& given_;
};

/// Beside the scenario's file, if it is there.
std::string failures_beside(const std::string& scenario_file, const std::string& name) {
  const fs::path beside = fs::path(scenario_file).parent_path() / name;
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".yaml");
  return is_path && fs::exists(beside) ? beside.string() : name;
}

void fill_failures(const Section& section, const ReliabilitySettings& from, RunOptions& to) {
  if (section.gives("--failures") || section.gives("--failures-per-1000-node-days") ||
      section.gives("--fault-trace"))
    return;
  if (!from.failures.empty()) to.failures = failures_beside(to.file, from.failures);
  if (from.failures_per_1000_node_days > 0)
    to.per_1000_node_days = from.failures_per_1000_node_days;
  const bool watched = section.gives("--collective-timeout") || section.gives("--heartbeat") ||
                       section.gives("--progress-steps");
  if (!watched) section.fill_text("--detection", from.detection, to.detection);
  section.fill_text("--repair", from.repair, to.repair);
}

/// How failures are noticed; --detection on the command line replaces it.
void fill_watch(const Section& section, const ReliabilitySettings& from, RunOptions& to) {
  if (section.gives("--detection")) return;
  section.fill_text("--collective-timeout", from.collective_timeout, to.collective_timeout);
  section.fill_text("--heartbeat", from.heartbeat, to.heartbeat);
  section.fill("--progress-steps", from.progress_steps, to.progress_steps);
}

}  // namespace

RunOptions with_section(RunOptions options, const Scenario& scenario,
                        const std::set<std::string>& given) {
  const ReliabilitySettings& from = scenario.reliability;
  const Section section(given);
  fill_failures(section, from, options);
  fill_watch(section, from, options);
  section.fill_text("--restart", from.restart_time, options.restart);
  section.fill_text("--checkpoint-interval", from.checkpoint_interval, options.interval);
  section.fill_text("--checkpoint-time", from.checkpoint_time, options.checkpoint_time);
  section.fill_text("--storage-bandwidth", from.storage_bandwidth, options.storage_bandwidth);
  section.fill_text("--memory-interval", from.memory_interval, options.memory_interval);
  section.fill_text("--local-interval", from.local_interval, options.local_interval);
  section.fill("--incremental-share", from.incremental_share, options.incremental_share);
  section.fill("--full-every", from.full_every, options.full_every);
  section.fill("--asynchronous", from.asynchronous, options.asynchronous);
  section.fill("--spares", from.spares, options.spares);
  section.fill("--repair-crews", from.repair_crews, options.repair_crews);
  section.fill("--least-replicas", from.least_replicas, options.least_replicas);
  constexpr std::array<const char*, 3> kPolicies = {"restart", "elastic", "replica-wise"};
  section.fill("--policy", std::string(kPolicies[static_cast<std::size_t>(from.policy)]),
               options.policy);
  section.fill("--batch", std::string(from.batch == BatchWithout::kept ? "kept" : "smaller"),
               options.batch);
  section.fill("--stragglers", std::string(from.keep_slow_nodes ? "keep" : "evict"),
               options.stragglers);
  return options;
}

}  // namespace tessera
