#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hw/units/id.h"
#include "workloads/program.h"

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
  explicit LinkUsers(std::size_t link_count) : links_(link_count) {}

  void add(std::span<const LinkId> links, const LinkUser& user) {
    for (const LinkId id : links) {
      Entry& entry = links_[static_cast<std::size_t>(id.index())];
      if (!entry.first) entry.first = user;
      if (*entry.first != user) entry.shared = true;
    }
  }

  bool any_shared(std::span<const LinkId> links) const {
    for (const LinkId id : links) {
      if (links_[static_cast<std::size_t>(id.index())].shared) return true;
    }
    return false;
  }

 private:
  struct Entry {
    std::optional<LinkUser> first;
    bool shared = false;
  };
  std::vector<Entry> links_;
};

}  // namespace tessera
