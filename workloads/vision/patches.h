#pragma once

#include "workloads/graph/tape.h"

namespace tessera {

// How transformers read images.

/// Height and width of a patch.
inline constexpr std::int32_t kPatch = 16;

/// A convolution whose windows are the patches. [b, 3, h, w] -> [b, h w / 256, hidden], a view of
/// the convolution's output.
Tensor patch_embedding(Tape& tape, const Tensor& images, std::int64_t hidden);

/// A trained token ahead of the patches: [b, n, hidden] -> [b, n + 1, hidden].
Tensor prepend_class_token(Tape& tape, const Tensor& patches);

}  // namespace tessera
