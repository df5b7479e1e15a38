#pragma once

#include "app/search/layer_costs.h"
#include "app/search/layout_bounds.h"
#include "app/search/layout_result.h"
#include "sim/process/answer.h"

namespace tessera {

// What the processes of a search answer; the layout stays with the one that asked.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutBound, step_time, memory)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayerCosts, forward, backward, embedding, head, saved,
                                   parameters, embedding_parameters, head_parameters, experts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceMemory, allocated, reserved, context, communicators)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayoutResult, step_time, tokens_per_s, mfu, bubble_fraction,
                                   peak_memory, memory, fits, times)

}  // namespace tessera
