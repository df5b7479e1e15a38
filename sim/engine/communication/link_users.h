#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hw/units/id.h"
#include "workloads/program/program.h"

namespace tessera {

/// Transfers that never overlap each other because one in-order stream issues them: those of one
/// communicator (collectives) or of one rank (messages).
struct LinkUser {
  OpKind kind = OpKind::all_reduce;
  int issuer = 0;  ///< index of the communicator, or rank
  StreamKind stream = StreamKind::compute;

  bool operator==(const LinkUser&) const = default;
};

/// Which links can ever carry two transfers at once.
class LinkUsers {
 public:
  explicit LinkUsers(std::size_t link_count) : users_(link_count, kNobody) {}

  void add(std::span<const LinkId> links, const LinkUser& user) {
    const std::uint64_t number = number_of(user);
    for (const LinkId id : links) {
      std::uint64_t& known = users_[static_cast<std::size_t>(id.index())];
      if (known != number) known = known == kNobody ? number : kSeveral;
    }
  }

  /// Somebody else may use `link` at any time.
  void share(LinkId link) { users_[static_cast<std::size_t>(link.index())] = kSeveral; }

  bool any_shared(std::span<const LinkId> links) const {
    for (const LinkId id : links) {
      if (users_[static_cast<std::size_t>(id.index())] == kSeveral) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kNobody = 0;
  static constexpr std::uint64_t kSeveral = 1;
  static constexpr std::uint64_t kFirst = 2;

  static std::uint64_t number_of(const LinkUser& user) {
    const auto issuer = static_cast<std::uint64_t>(user.issuer);
    const auto stream = static_cast<std::uint64_t>(user.stream);
    return kFirst + ((issuer << 16U) | (stream << 8U) | static_cast<std::uint64_t>(user.kind));
  }

  std::vector<std::uint64_t> users_;  ///< by link
};

}  // namespace tessera
