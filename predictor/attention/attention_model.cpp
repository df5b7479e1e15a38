#include "predictor/attention/attention_model.h"

#include <string>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "predictor/gpu/sm_rate.h"

namespace tessera {

AttentionGpu attention_gpu(const GpuSpec& gpu) {
  const Hertz clock = gpu.tensor_clock.value() > 0 ? gpu.tensor_clock : gpu.boost_clock;
  const Precision format = gpu.bf16.value() > 0 ? Precision::bf16 : Precision::fp16;
  const FlopsPerSecond peak = usable_peak(gpu, format);
  const AttentionGpu facts{.flops = peak.value(),
                           .bandwidth = gpu.memory_bandwidth.value(),
                           .sms = static_cast<double>(gpu.sm_count),
                           .clock = clock.value(),
                           .exponentials = exponentials_of_sm(gpu)};
  std::vector<Problem> problems;
  const auto require = [&](double value, const char* figure) {
    if (value > 0) return;
    problems.push_back({.where = "GPU " + gpu.id,
                        .what = std::string(figure) + " is missing",
                        .hint = "fused attention needs it; add it to the hardware description"});
  };
  require(facts.flops, "16-bit tensor peak");
  require(facts.bandwidth, "memory bandwidth");
  require(facts.sms, "SM count");
  require(facts.clock, "clock");
  if (!problems.empty()) throw InputError(std::move(problems));
  return facts;
}

}  // namespace tessera
