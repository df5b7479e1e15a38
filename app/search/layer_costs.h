#pragma once

#include <cstdint>

#include "hw/units/quantity.h"

namespace tessera {

/// Of one layer and micro-batch, without what depends on the depth of the pipeline.
struct LayerCosts {
  Seconds forward, backward;
  Seconds embedding, head;  ///< both directions
  Bytes saved;              ///< activations that wait for backward
  std::int64_t parameters = 0, embedding_parameters = 0, head_parameters = 0;
  std::int64_t experts = 0;  ///< of `parameters`, spread over other ranks than the rest
  bool operator==(const LayerCosts&) const = default;
};

}  // namespace tessera
