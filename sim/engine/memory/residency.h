#pragma once

#include <cstdint>
#include <vector>

#include "workloads/memory/tensor_lives.h"

namespace tessera {

/// Where each tensor of a GPU is, and how many bytes are away. Tensors are positions in
/// `TensorLives::all()`.
class Residency {
 public:
  enum class Place : std::uint8_t { nowhere, device, leaving, host, returning, given_up };

  explicit Residency(const TensorLives& lives) : lives_(lives), tensors_(lives.all().size()) {}

  Place place(std::int32_t tensor) const { return at(tensor).place; }
  bool was_made_again(std::int32_t tensor) const { return at(tensor).made_again; }
  Bytes bytes(std::int32_t tensor) const { return life(tensor).allocation.bytes; }
  /// Op that uses it next; only while one is left.
  std::int32_t next_use(std::int32_t tensor) const {
    return life(tensor).users[at(tensor).next_user];
  }
  std::uint32_t uses_begun(std::int32_t tensor) const { return at(tensor).next_user; }
  bool is_used_by(std::int32_t tensor, std::int32_t op) const;
  /// By an op of any stream that has begun and not ended.
  bool is_in_use(std::int32_t tensor) const { return at(tensor).using_now > 0; }

  /// In order of arrival, with those that leave or return.
  const std::vector<std::int32_t>& on_device() const { return on_device_; }
  /// In host memory, or on a way.
  const std::vector<std::int32_t>& away() const { return away_; }
  Bytes leaving_bytes() const { return leaving_bytes_; }
  Bytes host_bytes() const { return host_bytes_; }

  /// An op that makes or uses it begins.
  void use(std::int32_t tensor);
  /// An op that uses it has ended: behind its last one it is nowhere.
  void release(std::int32_t tensor);

  void leave(std::int32_t tensor);
  /// Its departure is called off.
  void stay(std::int32_t tensor);
  void left(std::int32_t tensor);
  void come_back(std::int32_t tensor);
  void came_back(std::int32_t tensor);
  void give_up(std::int32_t tensor);
  void made_again(std::int32_t tensor);

 private:
  struct Tensor {
    Place place = Place::nowhere;
    bool made_again = false;
    std::uint32_t next_user = 0;  ///< in `TensorLife::users`
    std::uint32_t using_now = 0;  ///< ops
  };

  const TensorLife& life(std::int32_t tensor) const {
    return lives_.all()[static_cast<std::size_t>(tensor)];
  }
  const Tensor& at(std::int32_t tensor) const { return tensors_[static_cast<std::size_t>(tensor)]; }
  Tensor& at(std::int32_t tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }

  const TensorLives& lives_;
  std::vector<Tensor> tensors_;
  std::vector<std::int32_t> on_device_;
  std::vector<std::int32_t> away_;
  Bytes leaving_bytes_;
  Bytes host_bytes_;  ///< held by what left
};

}  // namespace tessera
