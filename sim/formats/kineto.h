#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/quantity.h"

namespace tessera {

/// What a GPU kernel of a trace does, as far as its name tells.
enum class TraceOpClass : std::uint8_t {
  product,        ///< matrix products and convolutions
  attention,      ///< fused
  softmax,        ///< and losses built on it
  normalization,  ///< layer norm, RMS norm
  elementwise,    ///< and copies, fills, dropout
  reduction,
  gather_scatter,  ///< embeddings, indexing
  multi_tensor,    ///< optimizer, clipping
  communication,   ///< NCCL
  other,
};
constexpr int kTraceOpClassCount = 10;
std::string_view label_of(TraceOpClass op_class);
TraceOpClass class_of_kernel_name(std::string_view name);

/// Part of the step that launched a kernel.
enum class TracePhase : std::uint8_t { forward, backward, optimizer };

struct TraceKernel {
  Seconds start;  ///< from the first event on
  Seconds end;
  TraceOpClass op_class = TraceOpClass::other;
  TracePhase phase = TracePhase::forward;
};

/// The GPU's side of a PyTorch profile (Kineto) of one rank.
struct KinetoTrace {
  std::vector<TraceKernel> kernels;  ///< in order of start; only those of whole steps, where found
  int steps = 1;                     ///< 1 where none can be told apart
  Seconds window;    ///< of all these steps; where none are found from first to last kernel
  std::string note;  ///< how steps were told apart where "ProfilerStep" does not mark them
};

/// Reads Chrome trace JSON as torch.profiler writes it (`export_chrome_trace`, plain or gzip),
/// event by event: memory grows with the kernels alone. A kernel belongs to backward where its
/// launch came from a thread that runs autograd nodes, to the optimizer where it lies in an
/// "Optimizer.step" range, else to forward. Steps are "ProfilerStep" ranges, else what lies between
/// two ends of optimizer steps, else what the kernels of the busiest stream repeat. Throws
/// InputError with what is wrong in the file, or where it has no kernel.
KinetoTrace read_kineto(const std::filesystem::path& path);

}  // namespace tessera
