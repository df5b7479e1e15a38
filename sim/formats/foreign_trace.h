#pragma once

#include <filesystem>

namespace tessera {

/// Throws InputError that names what a file is, where it is a JSON trace of PyTorch rather than a
/// Chakra trace: an execution trace (ExecutionTraceObserver) or a profile (Kineto).
void refuse_json_trace(const std::filesystem::path& file);

}  // namespace tessera
