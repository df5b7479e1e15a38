#include "sim/collectives/collective_tuning.h"

#include <algorithm>
#include <cmath>

namespace tessera {

const GroupCalibration* CollectiveTuning::find(const CollectiveCall& call, int ranks,
                                               int nodes) const {
  const auto matches = [&](const GroupCalibration& group) {
    return group.collective == call.kind && group.ranks == ranks && group.nodes == nodes &&
           group.reduces_in_switch == call.reduces_in_switch;
  };
  const auto found = std::ranges::find_if(groups_, matches);
  return found == groups_.end() ? nullptr : &*found;
}

double correction_at(const std::vector<SizeCorrection>& corrections, Bytes bytes) {
  if (corrections.empty()) return 1;
  const auto after = std::ranges::find_if(
      corrections, [&](const SizeCorrection& knot) { return knot.bytes >= bytes; });
  if (after == corrections.end()) return corrections.back().factor;
  if (after == corrections.begin()) return after->factor;
  const SizeCorrection& before = *(after - 1);
  const auto position = [](Bytes size) { return std::log(static_cast<double>(size.value())); };
  const double part = (position(bytes) - position(before.bytes)) /
                      (position(after->bytes) - position(before.bytes));
  return std::exp(std::log(before.factor) +
                  part * (std::log(after->factor) - std::log(before.factor)));
}

}  // namespace tessera
