#pragma once

#include <filesystem>
#include <string>

#include "hw/units/quantity.h"
#include "sim/reliability/failure_model.h"

namespace tessera {

/// What a GPU costs, as a user's file says.
struct GpuPrice {
  double dollars_per_hour = 0;
  bool spot = false;
  std::string region, date, source;
  double interruptions_per_1000_node_days = 0;  ///< of spot instances
  Seconds notice;                               ///< before an interruption
  Seconds replacement;                          ///< until another node is there

  /// "H100 in us-east, 2026-10-01, spot (provider's list)".
  std::string text() const;
};

/// Which price is asked for.
struct PriceQuery {
  std::string gpu;     ///< its id
  std::string region;  ///< empty: the only one
  std::string date;    ///< YYYY-MM-DD, not later than this; empty: the newest
  bool spot = false;
};

/// Of a CSV with the columns gpu, region, date, dollars_per_hour and source, and for spot instances
/// kind (spot or on_demand), interruptions_per_1000_node_days, notice and replacement. Throws
/// InputError naming the line, or what the file lacks.
GpuPrice read_price(const std::filesystem::path& file, const PriceQuery& query);

/// Interruptions of `price` as a cause of failures. One with a notice is announced: the caller says
/// whether a checkpoint fits into it.
FailureClass interruptions_of(const GpuPrice& price);

}  // namespace tessera
