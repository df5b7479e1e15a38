#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/collectives/collective.h"

namespace tessera {

/// One size of an nccl-tests run, out of place.
struct NcclTime {
  Bytes bytes;
  Seconds time;
  std::string type;  ///< "float", "int8", ...
};

/// What nccl-tests printed, as text, with or without the tags that mpirun and srun put before
/// lines, or as JSON (-J).
struct NcclLog {
  std::string file;
  std::optional<CollectiveKind> collective;  ///< nothing where the log does not name it
  int ranks = 0;                             ///< 0 where the log does not list them
  int nodes = 0;
  bool even = true;            ///< every node has as many ranks
  std::set<std::string> gpus;  ///< names of the devices: "NVIDIA A100-SXM4-80GB"
  std::vector<NcclTime> times;
};

/// Throws InputError, naming the file and the line, where a row of the table cannot be read or
/// there is none.
NcclLog read_nccl_log(const std::filesystem::path& file);
NcclLog parse_nccl_log(std::string_view text, const std::string& file);

}  // namespace tessera
