#pragma once

#include <string>

#include "app/import/job/foreign_fields.h"
#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// Adapters and 4-bit weights as TRL's programs name them: --use_peft, --lora_r, --load_in_4bit.
/// `kind`: how accelerate distributes the job; `weights`: the 16-bit format that weights are loaded
/// in, empty for fp32. What a program of another kind means by --use_lora
/// is not known here, and is refused elsewhere. Source: trl 0.12 to 0.19, trainer/model_config.py
/// and utils.py (get_peft_config, get_quantization_config), as recalled.
void read_trainer_adapters(ScenarioDraft& draft, ForeignFields& in, const JobOptions& options,
                           const std::string& kind, const std::string& weights);

}  // namespace tessera
