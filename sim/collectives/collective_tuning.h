#pragma once

#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_constants.h"

namespace tessera {

/// Measured time over predicted time at one size; between sizes, linear in their logarithms.
struct SizeCorrection {
#include "configs/schema/fields/size_correction.inc"
};

/// What measurements of one collective on one shape of group change, for one way to run it.
struct ProtocolCalibration {
#include "configs/schema/fields/protocol_calibration.inc"
};

struct GroupCalibration {
#include "configs/schema/fields/group_calibration.inc"
};

/// What predictions of collectives depend on besides the topology.
class CollectiveTuning {
 public:
  CollectiveTuning() = default;
  explicit CollectiveTuning(CollectiveConstants constants) : constants_(constants) {}
  CollectiveTuning(CollectiveConstants constants, std::vector<GroupCalibration> groups)
      : constants_(constants), groups_(std::move(groups)) {}

  const CollectiveConstants& constants() const { return constants_; }
  const std::vector<GroupCalibration>& groups() const { return groups_; }
  /// The calibration of this collective and shape; null where there is none.
  const GroupCalibration* find(const CollectiveCall& call, int ranks, int nodes) const;

 private:
  CollectiveConstants constants_;
  std::vector<GroupCalibration> groups_;
};

/// Factor at a size; 1 without corrections.
double correction_at(const std::vector<SizeCorrection>& corrections, Bytes bytes);

}  // namespace tessera
