#pragma once

#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/collective_constants.h"

namespace tessera {

/// Measured time over predicted time at one size; between sizes, linear in their logarithms.
struct SizeCorrection {
  Bytes bytes;
  double factor = 1;
};

/// What measurements of one collective on one shape of group change, for one way to run it.
struct ProtocolCalibration {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  double latency_factor = 1;   ///< of the predicted latency
  double transfer_factor = 1;  ///< of the predicted time of the bytes on the links
  double fill_factor = 1;      ///< of the predicted time to fill the pipeline
  int rows = 0;                ///< measurements behind it
  double residual_pct = 0;     ///< mean absolute error on them
};

struct GroupCalibration {
  CollectiveKind collective = CollectiveKind::all_reduce;
  int ranks = 0;
  int nodes = 1;
  bool reduces_in_switch = true;
  std::vector<ProtocolCalibration> protocols;
  std::vector<SizeCorrection> corrections;  ///< ascending; outside of them the nearest
  Seconds launch;  ///< that the measurements contain and a stream does not wait for; not simulated
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
