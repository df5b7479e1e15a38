#include "sim/scenario/perturbation.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "workloads/program/program.h"

namespace tessera {
namespace {

/// Two tensor ranks, two replicas, two stages: rank = tensor + 2 * replica + 4 * stage.
constexpr ParallelLayout kLayout{.tensor = 2, .pipeline = 2, .data = 2};

std::string field_refused(const GpuPerturbation& gpus) {
  try {
    ranks_of(gpus, kLayout);
  } catch (const InputError& error) {
    return error.problems().front().where;
  }
  return "none";
}

TEST(PerturbedRanks, AreThoseOfAStageOrAReplica) {
  EXPECT_EQ(ranks_of({.stages = "1"}, kLayout), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(ranks_of({.replicas = "1"}, kLayout), (std::vector<int>{2, 3, 6, 7}));
}

TEST(PerturbedRanks, AreThoseThatAllListsName) {
  EXPECT_EQ(ranks_of({.stages = "0", .replicas = "1"}, kLayout), (std::vector<int>{2, 3}));
  EXPECT_EQ(ranks_of({.ranks = "0-2", .replicas = "1"}, kLayout), (std::vector<int>{2}));
}

TEST(PerturbedRanks, ListsThatNameNobodyAreRefusedByTheirField) {
  EXPECT_EQ(field_refused({}), "ranks");
  EXPECT_EQ(field_refused({.ranks = "8"}), "ranks");
  EXPECT_EQ(field_refused({.stages = "2"}), "stages");
  EXPECT_EQ(field_refused({.replicas = "0-2"}), "replicas");
  EXPECT_EQ(field_refused({.stages = "x"}), "stages");
  EXPECT_EQ(field_refused({.ranks = "0-1", .stages = "1"}), "ranks");  // both are of stage 0
}

}  // namespace
}  // namespace tessera
