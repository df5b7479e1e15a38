#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/attention/attention_weights.h"
#include "predictor/kernel_predictor.h"

namespace tessera {

/// In which software a call runs.
enum class AttentionSetting : std::uint8_t {
  training,  ///< the kernel alone behind a launch of 4 us: projections are kernels of their own
  serving,   ///< as the servers were timed: KV cache written, Q, K and V rearranged
};

/// How the duration of a call comes about: `factor` times the forward time.
struct AttentionParts {
  AttentionShape shape;
  AttentionGpu gpu;  ///< as the kernel finds it
  AttentionParameters<double> parameters;
  AttentionTime<double> forward;
  double factor = 1;  ///< 1 forward; backward the ratio to it; both their sum; times a calibration
};

/// Predicts fused attention on one GPU. Pure; safe to share between threads.
class AttentionPredictor {
 public:
  /// `stack`: the software, as measured; empty = unknown. Throws InputError where `gpu` lacks a
  /// figure or `weights` holds no profile.
  AttentionPredictor(const GpuSpec& gpu, AttentionWeights weights,
                     AttentionSetting setting = AttentionSetting::training, std::string stack = {});

  /// Multiplies every duration by e^`log_slowdown`, as an overlay says; `source` names its
  /// measurements.
  void calibrate(double log_slowdown, const std::string& source);

  /// Throws InputError for impossible sizes, and for FlashAttention on GPUs that do not run it: 2
  /// needs compute capability 8.0, 3 needs Hopper. `duration` of a backward pass is a ratio to the
  /// forward one, with FlashAttention-2's ratio for all implementations.
  KernelPrediction predict(const AttentionCall& call) const;
  Seconds duration(const AttentionCall& call) const { return predict(call).duration; }
  /// What `predict` puts together. Throws as it does.
  AttentionParts parts(const AttentionCall& call) const;
  /// Which measurements `call` is predicted from, in words.
  std::string provenance(const AttentionCall& call) const;
  /// What of the prediction was never measured, a line each, as KernelPredictor::notes.
  std::vector<std::string> notes(const AttentionCall& call) const;
  /// Whether its implementation was measured on this GPU.
  bool measured(const AttentionCall& call) const {
    return measured(profile(call)) && profile(call).implementation == call.implementation;
  }
  /// Part of every duration in training.
  static Seconds training_launch();

 private:
  const AttentionProfile& profile(const AttentionCall& call) const;
  bool measured(const AttentionProfile& profile) const { return profile.gpu == spec_.id; }
  AttentionParameters<double> parameters(const AttentionCall& call,
                                         const AttentionProfile& profile) const;
  AttentionGpu facts(const AttentionCall& call, const AttentionProfile& profile) const;
  double backward_ratio(const AttentionParts& parts) const;
  AttentionTime<double> served(const AttentionProfile& from, AttentionParts& parts) const;

  GpuSpec spec_;
  AttentionGpu gpu_;
  AttentionWeights weights_;
  AttentionSetting setting_;
  std::string stack_;
  double calibration_ = 1;          ///< measured / predicted duration
  std::string calibration_source_;  ///< in words; empty = none
};

}  // namespace tessera
