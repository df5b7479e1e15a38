#include "lab/predict/eager_calls.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

/// Median microseconds of calls whose kernels take less than a fifth of it (kernels_2026).
struct EagerCall {
  std::string_view word;  ///< in the name of the software
  double x86 = 0;         ///< hosts of A100, H100 and L40S
  double grace = 0;       ///< hosts of GB200; 0 = not timed
};

// tensor_core_block_scaled.csv and mla.csv. Each was timed on one x86 host, but triton_mla, whose
// two hosts (A100, L40S) agree within 2 %.
constexpr std::array<EagerCall, 6> kEager{{{"CutlassFp8BlockScaledMMKernel", 179, 288},
                                           {"DeepGemmFp8BlockScaledMMKernel", 91, 360},
                                           {"FlashInferFp8BlockScaledMMKernel", 60, 0},
                                           {"vllm_triton_mla", 295, 0},
                                           {"vllm_flash_attn_mla", 168, 0},
                                           {"vllm_flashmla", 200, 0}}};

/// A call of one Python function (custom_all_reduce.csv, eager, up to 4 KiB): 20 to 48 us on x86,
/// 44 to 73 us on Grace.
constexpr double kGraceToX86 = 1.6;

bool on_grace(std::string_view gpu) {
  return gpu.starts_with("GB") || gpu.starts_with("GH");
}

}  // namespace

Seconds host_seconds(std::string_view software, std::string_view gpu) {
  const auto found = std::ranges::find_if(
      kEager, [&](const EagerCall& call) { return software.find(call.word) != software.npos; });
  if (found == kEager.end()) return Seconds(0);
  if (!on_grace(gpu)) return Seconds(1e-6 * found->x86);
  return Seconds(1e-6 * (found->grace > 0 ? found->grace : kGraceToX86 * found->x86));
}

}  // namespace tessera
