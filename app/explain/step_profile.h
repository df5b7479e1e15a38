#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/formats/kineto.h"

namespace tessera {

/// Named figures in the order in which they are printed.
using NamedTimes = std::vector<std::pair<std::string, double>>;

enum class ProfileKind : std::uint8_t { simulated, trace };

/// One side of a comparison: what a GPU did in a step, in the terms in which a simulation and a
/// trace can be put beside each other. Times in seconds of one GPU (a simulation: mean over GPUs).
struct StepProfile {
  std::string name;
  ProfileKind kind = ProfileKind::simulated;
  std::string note;  ///< how steps of a trace were told apart where nothing marks them
  double step_time_s = 0;
  std::optional<double> peak_memory_bytes;
  std::optional<double> tokens_per_s;
  std::vector<std::pair<std::string, std::string>> setup;  ///< "gpu", "tensor", ...: as printed
  NamedTimes phases;                                       ///< adds up to the step time
  NamedTimes classes;  ///< time in kernels of each class; overlapping ones count twice
};

/// Of a result of `tessera simulate --format json` (schema tessera.result/1). Throws InputError,
/// naming `where`, for anything else.
StepProfile profile_of_result(const std::string& json, const std::string& where);

/// Of a trace: mean over its steps. Where kernels overlap, the one that started first counts; NCCL
/// kernels count only where nothing else runs.
StepProfile profile_of_trace(const KinetoTrace& trace, const std::string& where);

/// The phases and classes that a trace can tell apart: forward (with the loss), backward, optimizer
/// (with what prepares it), communication, idle; kernels by TraceOpClass.
StepProfile in_terms_of_traces(const StepProfile& profile);

/// Whether a file holds a trace (it has "traceEvents") rather than a result.
bool is_trace(const std::filesystem::path& file);

}  // namespace tessera
