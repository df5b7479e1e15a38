#include "app/cli/commands/run/run_store.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/sweep/content_hash.h"
#include "hw/units/input_error.h"
#include "sim/process/answer.h"

namespace tessera {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SeedFigure, mean, low, high)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeanCauseLoss, cause, events, stops, lost_h, slow_h, detection_h,
                                   restart_h, waiting_h)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunStatistics, seeds, effective_ratio, stops, hours_to_failure,
                                   node_availability, node_hours_out, checkpoints, wall, useful,
                                   slow, lost, checkpoint, detection, restart, waiting, fewer,
                                   least_replicas, causes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenGoal, tokens, reached, hours, hours_without_failures)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunStore::Result, runs, goal)

namespace {

constexpr const char* kHead = "tessera.run_store/1";

void add(ContentHash& hash, double number) {
  hash.add(number);
}
void add(ContentHash& hash, bool flag) {
  hash.add(std::int64_t{flag});
}
void add(ContentHash& hash, int number) {
  hash.add(std::int64_t{number});
}
void add(ContentHash& hash, const std::string& text) {
  hash.add(std::string_view(text));
}
void add(ContentHash& hash, Micros time) {
  hash.add(time.value());
}
void add(ContentHash& hash, Seconds time) {
  hash.add(time.value());
}
void add(ContentHash& hash, const std::optional<Seconds>& time) {
  hash.add(std::int64_t{time.has_value()}).add(time.value_or(Seconds(0)).value());
}

template <class... Values>
void add_all(ContentHash& hash, const Values&... values) {
  (add(hash, values), ...);
}

// The bindings have to name every member: one more, and this does not compile.
void add_class(ContentHash& hash, const FailureClass& of) {
  const auto& [name, component, per_node_day, shape, takes_nodes, repair, detection, restart,
               slowdown, stays, found_after, state, announced, source] = of;
  add_all(hash, name, static_cast<int>(component), per_node_day, shape, takes_nodes, repair,
          detection, restart, slowdown, stays, found_after, announced);
  for (const std::string& setting : state) add(hash, setting);
  add(hash, source);
}

void add_plan(ContentHash& hash, const RunPlan& plan) {
  const auto& [nodes, spares, crews, length, interval, checkpoint, write, memory_interval,
               memory_checkpoint, local_interval, local_checkpoint, full_every, increment,
               increment_write, increment_restart, write_slowdown, restart, elastic, replica_wise,
               replicas, least_replicas, paces, failures, recorded, recorded_detection, work] =
      plan;
  add_all(hash, nodes, spares, crews, length, interval, checkpoint, write, memory_interval,
          memory_checkpoint, local_interval, local_checkpoint, full_every, increment,
          increment_write, increment_restart, write_slowdown, restart, elastic, replica_wise,
          replicas, least_replicas, recorded_detection, work);
  for (const double pace : paces) add(hash, pace);
  add(hash, static_cast<int>(failures.classes.size()));
  for (const FailureClass& of : failures.classes) add_class(hash, of);
  for (const RecordedFault& fault : recorded)
    add_all(hash, fault.node, fault.cause, fault.begin, fault.end);
}

std::string check_of(const std::string& text) {
  return ContentHash().add(std::string_view(text)).hexadecimal();
}

}  // namespace

std::string key_of_run(const RunPlan& plan, const RunOptions& options, double tokens_per_s) {
  ContentHash hash;
  add_all(hash, std::string(TESSERA_VERSION), options.seeds, options.tokens, tokens_per_s);
  hash.add(static_cast<std::int64_t>(options.seed));
  add_plan(hash, plan);
  return hash.hexadecimal();
}

RunStore::RunStore(std::filesystem::path file) : file_(std::move(file)) {
  if (file_.empty() || !std::filesystem::exists(file_)) return;
  std::ifstream stored(file_);
  std::string line;
  if (!std::getline(stored, line) || line != kHead)
    throw InputError({file_.string(), "is no store of runs", "name a new file, or one of --store"});
  constexpr std::size_t kHash = 32;
  while (std::getline(stored, line)) {
    if (line.size() < 2 * kHash + 2) continue;
    const std::string text = line.substr(2 * kHash + 2);
    if (line.substr(kHash + 1, kHash) == check_of(text)) lines_[line.substr(0, kHash)] = text;
  }
}

std::optional<RunStore::Result> RunStore::find(const std::string& key) const {
  const auto found = lines_.find(key);
  if (found == lines_.end()) return std::nullopt;
  return nlohmann::json::parse(found->second).get<Result>();
}

void RunStore::add(const std::string& key, const Result& result) {
  if (file_.empty()) return;
  const bool is_new = !std::filesystem::exists(file_);
  std::ofstream stored(file_, std::ios::app);
  if (is_new) stored << kHead;
  // A line that a killed process left half-written ends here.
  const std::string text = nlohmann::json(result).dump();
  stored << "\n" << key << " " << check_of(text) << " " << text << std::flush;
  if (!stored) throw InputError({file_.string(), "cannot be written", "give a file that can"});
  lines_[key] = text;
}

}  // namespace tessera
