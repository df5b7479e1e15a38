#include "sim/config/micro_batches.h"

#include <string>

#include "sim/config/fields/schema_rules.h"
#include "workloads/program/rank_order.h"

namespace tessera {
namespace {

const std::string kMicroBatches = "training.micro_batches";
const std::vector<std::string> kOthers = {"training.global_batch", "training.micro_batch",
                                          "parallelism.data"};

}  // namespace

std::int64_t derived_micro_batch(const schema::Scenario& scenario) {
  const schema::Training& training = scenario.training();
  if (training.has_micro_batch()) return training.micro_batch();
  const std::int64_t micro_batches = training.has_micro_batches() ? training.micro_batches() : 1;
  return training.global_batch() / (scenario.parallelism().data() * micro_batches);
}

std::vector<Problem> check_rank_order(const schema::Scenario& scenario) {
  const std::string& order = scenario.parallelism().order();
  if (parse_rank_order(order)) return {};
  return {{"parallelism.order",
           "parallelism.order = " + order + " does not name tp, cp, ep, dp and pp once each",
           "write them from the nearest ranks to the farthest, as " + text_of(kDefaultRankOrder)}};
}

namespace {

/// Their range holds for derived ones too.
std::vector<Problem> check_derived(const schema::Scenario& scenario) {
  const auto& field = *schema::Training::descriptor()->FindFieldByName("micro_batches");
  const std::int64_t per_replica =
      scenario.training().global_batch() / scenario.parallelism().data();
  const std::int64_t micro_batch = derived_micro_batch(scenario);
  if (micro_batch <= 0) return {};
  const std::int64_t count = per_replica / micro_batch;
  if (count == 0 || in_range(static_cast<double>(count), field)) return {};
  return {{"training.global_batch",
           "training.global_batch = " + std::to_string(scenario.training().global_batch()) +
               " makes micro_batches = global_batch / (data * micro_batch) = " +
               std::to_string(count) + ", out of their range",
           "they are " + range_text(field) + ": use a smaller global_batch or a larger micro_batch",
           {"training.micro_batch", "parallelism.data"}}};
}

}  // namespace

std::vector<Problem> check_micro_batches(const schema::Scenario& scenario) {
  const schema::Training& training = scenario.training();
  const std::int64_t data = scenario.parallelism().data();
  if (data < 1 || training.global_batch() % data != 0) return {};
  if (!training.has_micro_batches()) return check_derived(scenario);
  const std::int64_t per_replica = training.global_batch() / data;
  const std::string given = kMicroBatches + " = " + std::to_string(training.micro_batches());
  const std::string whole = "global_batch / data = " + std::to_string(per_replica);
  if (per_replica % training.micro_batches() != 0) {
    return {{kMicroBatches, given + " does not divide " + whole,
             "use a number that divides " + std::to_string(per_replica), kOthers}};
  }
  const std::int64_t micro_batch = per_replica / training.micro_batches();
  if (!training.has_micro_batch() || training.micro_batch() == micro_batch) return {};
  return {{kMicroBatches,
           given + " contradicts micro_batch = " + std::to_string(training.micro_batch()) + ": " +
               whole,
           "give one of the two, or micro_batch = " + std::to_string(micro_batch), kOthers}};
}

}  // namespace tessera
