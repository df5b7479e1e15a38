#pragma once

#include <cstdint>

/// Numbers of MLCommons Chakra, schema/protobuf/et_def.proto (versions 0.0.4 and 1.0.0 agree in all
/// of it); chakra.proto has its messages.
namespace tessera::chakra {

enum NodeType : std::uint64_t {
  kInvalid = 0,
  kMetadata = 1,
  kLoad = 2,
  kStore = 3,
  kCompute = 4,
  kSend = 5,
  kRecv = 6,
  kCollective = 7
};

/// CollectiveCommType.
enum CollectiveType : std::int64_t {
  kAllReduce = 0,
  kReduce = 1,
  kAllGather = 2,
  kGather = 3,
  kScatter = 4,
  kBroadcast = 5,
  kAllToAll = 6,
  kReduceScatter = 7,
  kReduceScatterBlock = 8,
  kBarrier = 9
};

}  // namespace tessera::chakra
