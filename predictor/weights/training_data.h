#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// A file that was trained on.
struct TrainingData {
  std::string file;         ///< name without folder
  std::uint64_t fnv1a = 0;  ///< of the whole file
  std::int64_t rows = 0;    ///< used for training
};

}  // namespace tessera
