#pragma once

#include <cstdint>
#include <vector>

#include "configs/schema/scenario.pb.h"
#include "sim/scenario/rules/check_scenario.h"

namespace tessera {

/// `training.micro_batch`, or what it follows from: micro_batches, 1 where that is not given
/// either. 0 where a replica gets fewer sequences than it has micro-batches.
std::int64_t derived_micro_batch(const schema::Scenario& scenario);

/// Whether parallelism.order names every dimension once.
std::vector<Problem> check_rank_order(const schema::Scenario& scenario);

/// Whether micro_batches, where given, cuts the batch of a replica evenly and agrees with
/// micro_batch; and where derived, is in its range.
std::vector<Problem> check_micro_batches(const schema::Scenario& scenario);

}  // namespace tessera
