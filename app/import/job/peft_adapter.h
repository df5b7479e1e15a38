#pragma once

#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"
#include "workloads/model_spec.h"

namespace tessera {

/// Whether Hugging Face's modules run adapters beside the layers of `model`.
bool stands_beside_layers_of_transformers(const ModelSpec& model);

/// Factors, their gradients and states in fp32, frozen weights in the 16 bits of the step: what
/// peft makes of a model that is loaded in them. Source: peft, tuners/tuners_utils.py,
/// cast_adapter_dtype (recalled).
void hold_factors_in_fp32(ScenarioDraft& draft);

/// Sets the adapters of `options.adapter`, an adapter_config.json of peft (LoRA and DoRA), beside
/// `model`. Throws InputError with everything in it that a step depends on and no field expresses;
/// where `options` are lenient, that is an approximation.
/// Source: peft 0.17, tuners/lora/config.py, as recalled.
void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, const JobOptions& options);
/// The same of what such a file holds.
void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, YamlNode adapter,
                      const JobOptions& options);

}  // namespace tessera
