#pragma once

#include <string>

#include "lab/fit/attention/attention_fit.h"
#include "tests/predictor/tensor/half_gpus.h"

namespace tessera {

inline constexpr const char* kAttentionHeader =
    "gpu,dtype,direction,causal,batch,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us,tflops,stack,"
    "source\n";

inline std::string attention_row(const std::string& gpu, const AttentionCall& call, double us,
                                 const std::string& stack, const std::string& source = "server") {
  const char* direction =
      call.direction == AttentionDirection::forward ? "forward" : "forward+backward";
  std::string row = gpu + ",bf16," + direction + (call.causal ? ",1" : ",0");
  for (const std::int64_t size :
       {call.batch, call.heads, call.kv_heads, call.head_dim, call.seq_q, call.seq_kv})
    row += "," + std::to_string(size);
  return row + "," + std::to_string(us) + ",0," + stack + "," + source + "\n";
}

/// Calls of an imaginary kernel with parameters `x`, exactly as the form says.
inline std::string synthetic_attention(const std::string& gpu, const AttentionVector& x) {
  const AttentionGpu traits = attention_gpu(half_test_gpu(gpu));
  const auto p = AttentionParameters<double>::from_unconstrained(std::span<const double>(x));
  std::string text;
  for (const std::int64_t seq : {128, 256, 512, 1000, 2048, 4096, 8192})
    for (const std::int64_t batch : {1, 2, 7, 16})
      for (const std::int64_t heads : {4, 12, 32})
        for (const std::int64_t group : {1, 4}) {
          const AttentionCall call{.batch = batch,
                                   .heads = heads,
                                   .kv_heads = heads / group,
                                   .seq_q = seq,
                                   .seq_kv = seq,
                                   .head_dim = 128};
          const double us = 1e6 * attention_time(attention_shape(call), traits, p, true).total;
          text += attention_row(gpu, call, us, "sglang/flash_attention");
        }
  return text;
}

}  // namespace tessera
