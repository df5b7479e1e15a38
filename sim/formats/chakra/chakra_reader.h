#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "sim/formats/chakra/chakra_schema.h"

namespace tessera {

/// A node of a Chakra execution trace, as far as a simulation uses it.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  chakra::NodeType type = chakra::kInvalid;
  std::vector<std::size_t> dependencies;  ///< positions in the trace, data and control, ascending
  Seconds duration;               ///< `duration_ns` where Tessera wrote it, else `duration_micros`
  bool on_host = false;           ///< is_cpu_op
  std::int64_t operations = 0;    ///< num_ops
  std::int64_t tensor_bytes = 0;  ///< tensor_size
  chakra::CollectiveType collective = chakra::kAllReduce;
  Bytes bytes;             ///< comm_size
  std::string group;       ///< pg_name; empty: all ranks
  std::int64_t peer = -1;  ///< comm_dst of a send, comm_src of a recv
  std::int64_t tag = 0;    ///< comm_tag
  // What only Tessera's own traces say.
  Seconds host_time;       ///< host_ns: what the host needs to launch it
  Seconds product_time;    ///< product_ns: of `duration`, in matrix products and attention
  bool host_sync = false;  ///< the host waits for its end
};

/// The nodes of one rank, in the order of the file.
struct ChakraTrace {
  std::string file;     ///< for messages
  std::string version;  ///< of the schema, as the file says
  std::vector<ChakraNode> nodes;
};

/// Reads a trace of version 0.0.4 or 1.0.0, plain or gzip. Throws InputError with what is wrong:
/// damage, another version, unknown types, ids that appear twice or not at all.
ChakraTrace read_chakra(const std::filesystem::path& file);

/// Ranks of groups by name, ascending: {"1": [0, 1], ...}, as ASTRA-sim's communicator groups.
using ChakraGroups = std::map<std::string, std::vector<int>>;
ChakraGroups read_chakra_groups(const std::filesystem::path& file);

}  // namespace tessera
