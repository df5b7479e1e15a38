#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/memory/copy_lanes.h"
#include "sim/engine/memory/memory_host.h"
#include "sim/engine/memory/op_uses.h"

namespace tessera {

/// Where the tensors of a GPU are that may leave it, and the ledger's part of it. A copy in host
/// memory stays as long as the tensor does: a second departure is free.
class TensorStore {
 public:
  enum class HostCopy : std::uint8_t { none, under_way, complete };

  TensorStore(MemoryHost& host, const TensorLives& lives, const OpUses& uses);

  bool is_here(std::int32_t tensor) const { return at(tensor).here; }
  /// On the device as a whole.
  bool is_ready(std::int32_t tensor) const { return at(tensor).here && !at(tensor).arriving; }
  bool is_arriving(std::int32_t tensor) const { return at(tensor).arriving; }
  /// Goes when its copy to the host is complete.
  bool is_leaving(std::int32_t tensor) const { return at(tensor).leaving; }
  HostCopy host_copy(std::int32_t tensor) const { return at(tensor).copy; }
  /// Made, and ops still to begin use it.
  bool is_live(std::int32_t tensor) const { return at(tensor).made && has_use(tensor); }
  bool has_use(std::int32_t tensor) const {
    return at(tensor).next_user < life(tensor).users.size();
  }
  /// Op that uses it next; only where there is one.
  std::int32_t next_use(std::int32_t tensor) const {
    return life(tensor).users[at(tensor).next_user];
  }
  std::int32_t last_use(std::int32_t tensor) const { return life(tensor).users.back(); }
  /// Op before the next use that used it last.
  std::int32_t used_by(std::int32_t tensor) const { return at(tensor).used_by; }
  Bytes bytes(std::int32_t tensor) const { return life(tensor).allocation.bytes; }

  /// Of those here.
  Bytes held() const { return held_; }
  /// Of those here that leave.
  Bytes leaving() const { return leaving_; }
  /// Of host copies, those under way included.
  Bytes on_host() const { return on_host_; }
  /// Of those that have a copy alone.
  Bytes away() const { return away_; }
  const std::vector<std::int32_t>& here() const { return here_; }
  bool copies() const { return !lanes_.idle(); }
  const CopyLanes& lanes() const { return lanes_; }

  /// The program's op begins: what it makes is here, with the memory that its segment takes.
  void begin(std::int32_t op);
  /// Its segment has freed what nobody uses any more; `holds` keeps some of that.
  template <class Holds>
  void end(std::int32_t op, Holds&& holds) {
    for (const auto& list : {uses_.made_by(op), uses_.read_by(op)}) {
      for (const std::int32_t tensor : list) {
        if (has_use(tensor)) continue;
        if (holds(tensor)) {
          change(bytes(tensor));
        } else {
          forget(tensor);
        }
      }
    }
  }
  /// `op` ran again; the ledger counts what comes of it. Returns how many bytes.
  Bytes made_again(std::int32_t op);

  void drop(std::int32_t tensor);
  void copy_out(std::int32_t tensor);
  /// Leaves as soon as its host copy is complete.
  void leave(std::int32_t tensor);
  void stay(std::int32_t tensor);
  void come_back(std::int32_t tensor);

 private:
  struct Entry {
    bool here = false, arriving = false, leaving = false, made = false;
    bool stale = false;  ///< the copy under way: the tensor was overwritten since
    HostCopy copy = HostCopy::none;
    std::uint32_t next_user = 0;  ///< in `TensorLife::users`
    std::int32_t used_by = -1;
  };

  Entry& at(std::int32_t tensor) { return entries_[static_cast<std::size_t>(tensor)]; }
  const Entry& at(std::int32_t tensor) const { return entries_[static_cast<std::size_t>(tensor)]; }
  const TensorLife& life(std::int32_t tensor) const {
    return lives_.all()[static_cast<std::size_t>(tensor)];
  }
  void change(Bytes by) { host_.ledger.change(host_.clock.now(), by); }
  void arrive(std::int32_t tensor);
  void gone(std::int32_t tensor);
  /// `op` may overwrite it: its copy is worth nothing.
  void outdate_copy(std::int32_t tensor, std::int32_t op);
  /// Nobody needs it, nor its copy.
  void forget(std::int32_t tensor);
  void copied(CopyWay way, std::int32_t tensor);

  MemoryHost& host_;
  const TensorLives& lives_;
  const OpUses& uses_;
  CopyLanes lanes_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> here_;
  Bytes held_, leaving_, on_host_, away_;
};

}  // namespace tessera
