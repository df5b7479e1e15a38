#pragma once

#include "app/import/job/imported_job.h"
#include "app/import/job/scenario_draft.h"
#include "workloads/model_spec.h"

namespace tessera {

/// Whether Hugging Face's modules run what `options.adapter` puts beside `model`.
bool stands_beside_layers_of_transformers(const ModelSpec& model, const JobOptions& options);

/// Sets the adapters of `options.adapter`, an adapter_config.json of peft (LoRA and DoRA), beside
/// `model`. Throws InputError with everything in it that a step depends on and no field expresses;
/// where `options` are lenient, that is an approximation.
/// Source: peft 0.17, tuners/lora/config.py, as recalled.
void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, const JobOptions& options);
/// The same of what such a file holds.
void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, YamlNode adapter,
                      const JobOptions& options);

}  // namespace tessera
