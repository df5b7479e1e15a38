#pragma once

#include "workloads/graph/tape.h"

namespace tessera {

// How transformers read images.

/// Height and width of a patch.
inline constexpr std::int32_t kPatch = 16;

/// A convolution whose windows are the patches. [b, c, h, w] -> [b, h w / side^2, hidden], a view
/// of the convolution's output.
Tensor patch_embedding(Tape& tape, const Tensor& images, std::int64_t hidden,
                       std::int32_t side = kPatch);

/// A trained token ahead of the patches: [b, n, hidden] -> [b, n + 1, hidden].
Tensor prepend_class_token(Tape& tape, const Tensor& patches);

}  // namespace tessera
