#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tessera {

/// A sequence that ends in repetitions of one part.
struct Repetition {
  std::size_t length = 0;  ///< of the part
  std::size_t count = 0;   ///< whole parts at the end of the sequence, at least 2
};

/// The part that a sequence of kernels, given by numbers of their names, repeats up to its end, the
/// shortest one. Nothing where more than one part's length lies before the repetitions: what
/// repeats may then be a layer of the last step. Linear in time.
std::optional<Repetition> repetition_in(std::span<const int> names);

}  // namespace tessera
