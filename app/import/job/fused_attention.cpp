#include "app/import/job/fused_attention.h"

#include <string>

namespace tessera {
namespace {

/// Families for which transformers has it.
bool has_fused_attention(ModelFamily family) {
  return family == ModelFamily::llama || family == ModelFamily::gpt2 ||
         family == ModelFamily::opt || family == ModelFamily::bert;
}

}  // namespace

void assume_fused_attention(ScenarioDraft& draft, ModelFamily family, bool in_16_bits,
                            const std::string& other) {
  if (!has_fused_attention(family)) return;
  if (!in_16_bits)
    return draft.approximate(
        "attention in fp32 counts with all of its scores: kernels of sdpa for fp32, which keep "
        "none, are not simulated");
  draft.set_in_framework("attention", "flash2");
  draft.assume("fused attention (sdpa), which transformers chooses since 4.36: " + other +
               " names the other");
}

void assume_fused_attention(ScenarioDraft& draft, const JobOptions& options, ModelFamily family) {
  if (!options.framework.empty()) return;
  const std::string precision = draft.said("training.precision");
  assume_fused_attention(draft, family, precision != "fp32" && precision != "tf32",
                         "--framework hf-eager, of 4.35,");
}

}  // namespace tessera
