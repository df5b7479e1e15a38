#pragma once

#include <string>

#include "app/import/job/scenario_draft.h"
#include "workloads/model_spec.h"

namespace tessera {

/// transformers has chosen fused attention by itself since 4.36 (sdpa, of the families that have
/// it), and profile hf-eager is of 4.35, which has none: sets it in the framework and says so, with
/// what chooses the other. For fp32 there is none to set; results say that they are approximate.
void assume_fused_attention(ScenarioDraft& draft, ModelFamily family, bool in_16_bits,
                            const std::string& other);

/// Likewise where `options` name no framework, and the draft says the precision of the products.
void assume_fused_attention(ScenarioDraft& draft, const JobOptions& options, ModelFamily family);

}  // namespace tessera
