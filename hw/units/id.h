#pragma once

#include <compare>
#include <cstdint>

namespace tessera {

/// Position of something in the one table that owns it; `Tag` keeps a rank from being used as a
/// link.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t index) : index_(index) {}
  constexpr std::int32_t index() const { return index_; }
  constexpr bool valid() const { return index_ >= 0; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t index_ = -1;
};

using RankId = Id<struct RankTag>;  ///< a process of the job; global rank = one GPU of the cluster
using LinkId = Id<struct LinkTag>;  ///< one direction of a link of a Topology
using SegmentId = Id<struct SegmentTag>;  ///< a run of kernels in a Program

}  // namespace tessera
