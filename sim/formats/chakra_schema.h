#pragma once

#include <cstdint>

/// What reader and writer share of MLCommons Chakra, schema/protobuf/et_def.proto (versions 0.0.4
/// and 1.0.0 agree in all of it).
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

namespace node_field {
constexpr int kId = 1, kName = 2, kType = 3, kControlDeps = 4, kDataDeps = 5, kDuration = 7,
              kAttribute = 10;
}
namespace attribute_field {
constexpr int kName = 1, kDouble = 3, kFloat = 5, kInt32 = 7, kInt64 = 9, kUint32 = 11,
              kUint64 = 13, kSint32 = 15, kSint64 = 17, kFixed32 = 19, kFixed64 = 21,
              kSfixed32 = 23, kSfixed64 = 25, kBool = 27, kString = 29;
}

}  // namespace tessera::chakra
