// libFuzzer entry: whatever bytes a file of llm-foundry holds, of MPT and of another model.
#include "tests/fuzz/import_job_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const char* model : {"", "gpt2"})
    tessera::fuzz::import_job_or_refuse(tessera::import_foundry, data, size,
                                        {.model = model, .gpus = 8});
  return 0;
}
