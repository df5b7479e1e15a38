// libFuzzer entry: whatever bytes a file of the Trainer, LLaMA-Factory or axolotl holds.
#include "tests/fuzz/import_job_check.h"
#include "workloads/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tessera::ModelSpec model;
  model.family = tessera::ModelFamily::llama;
  model.layers = 2;
  model.hidden = 64;
  model.heads = model.kv_heads = 4;
  const auto options = tessera::with_spec({.model = "small"}, model);
  tessera::fuzz::import_job_or_refuse(tessera::import_trainer_file, data, size, options);
  return 0;
}
