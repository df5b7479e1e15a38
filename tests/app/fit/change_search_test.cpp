#include "app/fit/change_search.h"

#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

MemoryNeed need_of(Bytes optimizer, Bytes activations) {
  MemoryNeed need{.parts = {}, .device = {}, .capacity = 80_GiB};
  need.parts[MemoryCategory::optimizer] = optimizer;
  need.parts[MemoryCategory::activations] = activations;
  need.device.allocated = need.device.reserved = need.parts.total();
  return need;
}

/// 60 GiB of states and 60 GiB of activations on 80 GiB: ZeRO divides the first by its level + 1,
/// recomputation leaves a half (selective) or a tenth (full) of the second.
class Steps {
 public:
  std::vector<ChangeNeed> operator()(const std::vector<FitChange>& changes) {
    std::vector<ChangeNeed> found;
    for (const FitChange& change : changes) {
      looked_at.push_back(change.name);
      ChangeNeed each{.change = change, .need = {}, .refused = {}};
      if (change.name.find("tp") != std::string::npos) {
        each.refused = "not split over GPUs";
      } else {
        each.need = need_of(Bytes((60_GiB).value() / (1 + level(change, "ZeRO-"))),
                            Bytes((60_GiB).value() / divisor(change)));
        const Bytes total = each.need->device.total();
        each.verdict = total <= 80_GiB ? FitVerdict::fits : FitVerdict::does_not_fit;
      }
      found.push_back(std::move(each));
    }
    return found;
  }
  std::vector<std::string> looked_at;

 private:
  static int level(const FitChange& change, const std::string& word) {
    const auto at = change.name.find(word);
    return at == std::string::npos ? 0 : change.name[at + word.size()] - '0';
  }
  static std::int64_t divisor(const FitChange& change) {
    if (change.name.find("full") != std::string::npos) return 10;
    return change.name.find("selective") != std::string::npos ? 2 : 1;
  }
};

FitChange change(const std::string& name, ChangeKind kind, int cost) {
  return {.name = name, .kinds = {kind}, .settings = {name}, .cost = cost};
}

const std::vector<FitChange> kSingles{change("ZeRO-1", ChangeKind::sharding, 1),
                                      change("ZeRO-2", ChangeKind::sharding, 2),
                                      change("recompute selective", ChangeKind::recompute, 2),
                                      change("recompute full", ChangeKind::recompute, 4),
                                      change("tp 2", ChangeKind::tensor, 2),
                                      change("tp 4", ChangeKind::tensor, 3)};

Scenario eight_replicas() {
  Scenario scenario;
  scenario.step.layout.data = 8;
  scenario.cluster.node.gpu_count = 8;
  return scenario;
}

std::vector<std::string> names_of(const std::vector<FitChange>& changes) {
  std::vector<std::string> names;
  for (const FitChange& each : changes) names.push_back(each.name);
  return names;
}

TEST(FindChanges, ASingleOneThatFitsIsEnoughOfItsKind) {
  Steps steps;
  const FoundChanges found =
      find_changes(eight_replicas(), need_of(60_GiB, 60_GiB), kSingles, std::ref(steps), 2, 8);
  // 60 / 3 + 60 = 80; 60 + 6 = 66. ZeRO-1 (30 + 60) and selective (60 + 30) do not fit.
  EXPECT_EQ(names_of(found.fitting), (std::vector<std::string>{"ZeRO-2", "recompute full"}));
}

TEST(FindChanges, PairsAreMadeOfWhatDoesNotFitAlone) {
  Steps steps;
  const FoundChanges found =
      find_changes(eight_replicas(), need_of(60_GiB, 60_GiB), kSingles, std::ref(steps), 3, 8);
  EXPECT_EQ(names_of(found.fitting),
            (std::vector<std::string>{"ZeRO-2", "ZeRO-1 + recompute selective", "recompute full"}));
}

/// Adapters freeze 50 GiB of weights in place of 80 GiB of states; recomputed, 60 GiB of
/// activations become 6, and a moment with 70 GiB of temporary tensors, which adapters do not have,
/// the peak.
std::vector<ChangeNeed> adapters_and_recomputation(const std::vector<FitChange>& changes) {
  std::vector<ChangeNeed> found;
  for (const FitChange& change : changes) {
    const bool adapters = change.name.find("LoRA") != std::string::npos;
    const bool full = change.name.find("full") != std::string::npos;
    ChangeNeed each{.change = change, .need = {}, .refused = {}};
    each.need = need_of(adapters ? 0_B : 80_GiB, full ? 6_GiB : 60_GiB);
    each.need->parts[MemoryCategory::buffers] = adapters ? 50_GiB : 0_B;
    each.need->parts[MemoryCategory::temporary] = full && !adapters ? 70_GiB : 1_GiB;
    each.need->device.allocated = each.need->device.reserved = each.need->parts.total();
    const Bytes total = each.need->device.total();
    each.verdict = total <= 80_GiB ? FitVerdict::fits : FitVerdict::does_not_fit;
    found.push_back(std::move(each));
  }
  return found;
}

TEST(FindChanges, PartsThatOneChangeAddsAreCountedAndThoseOfAnotherPeakAreNot) {
  const std::vector<FitChange> singles{change("recompute selective", ChangeKind::recompute, 1),
                                       change("recompute full", ChangeKind::recompute, 4),
                                       change("LoRA", ChangeKind::adapters, 6)};
  MemoryNeed base = need_of(80_GiB, 60_GiB);
  base.parts[MemoryCategory::temporary] = 1_GiB;
  base.device.allocated = base.device.reserved = base.parts.total();
  // One pair alone is looked at: 50 + 6 + 1 fits, selective's 50 + 60 + 1 does not.
  const FoundChanges found =
      find_changes(eight_replicas(), base, singles, adapters_and_recomputation, 1, 1);
  EXPECT_EQ(names_of(found.fitting), (std::vector<std::string>{"recompute full + LoRA"}));
}

TEST(FindChanges, RefusedOnesAreToldOnceForAllDegrees) {
  Steps steps;
  const FoundChanges found =
      find_changes(eight_replicas(), need_of(60_GiB, 60_GiB), kSingles, std::ref(steps), 2, 8);
  ASSERT_EQ(found.refused.size(), 1U);
  EXPECT_EQ(found.refused[0].change.name, "tp 2");
  EXPECT_EQ(found.refused[0].refused, "not split over GPUs");
}

TEST(FitChange, CombinationsKeepTheSequencesOfAStep) {
  FitChange smaller = change("micro-batch 1", ChangeKind::micro_batch, 1);
  smaller.micro_batch = 1;
  smaller.settings.clear();
  FitChange wider = change("tp 2", ChangeKind::tensor, 2);
  wider.wider = 2;
  wider.settings = {"parallelism.tensor=2"};
  Scenario scenario = eight_replicas();
  scenario.step.global_batch = 32;
  scenario.step.micro_batch = 2;
  // 32 sequences over 4 replicas, one at a time: 8 micro-batches.
  EXPECT_EQ(smaller.and_also(wider).all_settings(scenario),
            (std::vector<std::string>{"parallelism.tensor=2", "parallelism.data=4",
                                      "training.micro_batch=1", "training.micro_batches=8"}));
  EXPECT_FALSE(wider.goes_with(wider));
}

TEST(FitChange, NothingIsSharedWhereNoReplicasAreLeft) {
  FitChange wide = change("tp 8", ChangeKind::tensor, 6);
  wide.wider = 8;
  const FitChange sharded = change("ZeRO-1", ChangeKind::sharding, 1);
  EXPECT_TRUE(sharded.makes_sense(eight_replicas()));
  EXPECT_TRUE(wide.makes_sense(eight_replicas()));
  EXPECT_FALSE(sharded.and_also(wide).makes_sense(eight_replicas()));
}

TEST(FitChange, ReplicasThatDoNotDivideNeedMoreGpus) {
  FitChange wide = change("tp 2", ChangeKind::tensor, 2);
  wide.wider = 2;
  Scenario scenario = eight_replicas();
  scenario.step.layout.data = 3;
  EXPECT_EQ(wide.replicas(scenario), 3);  // on 6 of the 8 GPUs
  EXPECT_TRUE(wide.makes_sense(scenario));
  scenario.step.layout.data = 5;
  EXPECT_FALSE(wide.makes_sense(scenario));
}

constexpr const char* kWeightsToo =
    "weights and optimizer on the CPU (FSDP's CPU offload, ZeRO-3's offload_param)";

TEST(SingleChanges, OfferStatesInEightBitsAndAnOptimizerOnTheCpu) {
  const auto offers = [](const Scenario& scenario, const std::string& name) {
    return std::ranges::any_of(single_changes(scenario),
                               [&](const FitChange& change) { return change.name == name; });
  };
  Scenario scenario;
  scenario.step.micro_batch = scenario.step.global_batch = 1;
  scenario.cluster.node.gpu_count = scenario.cluster.node_count = 1;
  EXPECT_TRUE(offers(scenario, "optimizer states in 8 bit"));
  EXPECT_FALSE(offers(scenario, "optimizer on the CPU (ZeRO-Offload)"));  // bandwidth unknown
  scenario.cluster.node.host_memory_bandwidth = BytesPerSecond(200e9);
  EXPECT_TRUE(offers(scenario, "optimizer on the CPU (ZeRO-Offload)"));
  EXPECT_TRUE(offers(scenario, kWeightsToo));
  scenario.step.formats.optimizer_states = Precision::int8;
  EXPECT_FALSE(offers(scenario, "optimizer states in 8 bit"));
  scenario.step.optimizer = OptimizerKind::sgd;
  EXPECT_FALSE(offers(scenario, "optimizer on the CPU (ZeRO-Offload)"));
  EXPECT_FALSE(offers(scenario, kWeightsToo));
}

// On one GPU nothing else can be sharded, and the change would make no sense as one of sharding.
TEST(SingleChanges, WeightsOnTheCpuGoWithEverythingButAnotherSharding) {
  Scenario scenario;
  scenario.step.micro_batch = scenario.step.global_batch = 1;
  scenario.cluster.node.gpu_count = scenario.cluster.node_count = 1;
  scenario.cluster.node.host_memory_bandwidth = BytesPerSecond(200e9);
  const auto weights_too = [&] {
    const std::vector<FitChange> changes = single_changes(scenario);
    return *std::ranges::find(changes, std::string(kWeightsToo), &FitChange::name);
  };
  EXPECT_TRUE(weights_too().makes_sense(scenario));
  scenario.cluster.node.gpu_count = scenario.step.layout.data = 2;
  FitChange sharding;
  sharding.kinds = {ChangeKind::sharding};
  EXPECT_FALSE(weights_too().goes_with(sharding));
  EXPECT_THAT(weights_too().settings,
              testing::Contains("training.data_parallel.sharding=parameters"));
}

std::vector<std::string> names_with(const Scenario& scenario, const std::string& begin) {
  std::vector<std::string> names = names_of(single_changes(scenario));
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(begin); });
  return names;
}

TEST(SingleChanges, SpreadExpertsOverRanksThatHoldCopiesOfThem) {
  Scenario scenario = eight_replicas();
  scenario.step.micro_batch = 1;
  scenario.step.global_batch = 8;
  EXPECT_THAT(names_with(scenario, "ep "), testing::IsEmpty());  // a dense model
  scenario.model.experts = 8;
  EXPECT_THAT(names_with(scenario, "ep "), testing::ElementsAre("ep 2", "ep 4", "ep 8"));
  scenario.model.experts = 60;
  EXPECT_THAT(names_with(scenario, "ep "), testing::ElementsAre("ep 2", "ep 4"));
  scenario.step.layout.expert = 2;
  scenario.step.layout.data = 12;
  EXPECT_THAT(names_with(scenario, "ep "), testing::ElementsAre("ep 4"));
  scenario.step.layout.data = 1;
  EXPECT_THAT(names_with(scenario, "ep "), testing::IsEmpty());
}

TEST(SingleChanges, GroupsThatEachHoldACopyAreUndone) {
  Scenario scenario = eight_replicas();
  scenario.step.micro_batch = 1;
  scenario.step.global_batch = 8;
  scenario.step.data_parallel.shard_group = 4;
  EXPECT_THAT(names_with(scenario, "shards over"), testing::IsEmpty());  // nothing is sharded
  scenario.step.data_parallel.sharding = Sharding::parameters;
  EXPECT_THAT(names_with(scenario, "shards over"), testing::SizeIs(1));
  scenario.step.data_parallel.shard_group = 8;
  EXPECT_THAT(names_with(scenario, "shards over"), testing::IsEmpty());
}

}  // namespace
}  // namespace tessera
