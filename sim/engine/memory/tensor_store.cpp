#include "sim/engine/memory/tensor_store.h"

namespace tessera {

TensorStore::TensorStore(MemoryHost& host, const TensorLives& lives, const OpUses& uses)
    : host_(host),
      lives_(lives),
      uses_(uses),
      lanes_(host_, [this](CopyWay way, std::int32_t tensor) { copied(way, tensor); }),
      entries_(lives.all().size()) {}

void TensorStore::arrive(std::int32_t tensor) {
  if (at(tensor).here) return;
  if (host_copy(tensor) == HostCopy::complete) away_ -= bytes(tensor);
  at(tensor).here = at(tensor).made = true;
  here_.push_back(tensor);
  held_ += bytes(tensor);
}

void TensorStore::gone(std::int32_t tensor) {
  Entry& entry = at(tensor);
  if (!entry.here) return;
  if (entry.leaving) leaving_ -= bytes(tensor);
  entry.here = entry.arriving = entry.leaving = false;
  std::erase(here_, tensor);
  held_ -= bytes(tensor);
}

void TensorStore::forget(std::int32_t tensor) {
  gone(tensor);
  if (host_copy(tensor) == HostCopy::complete) on_host_ -= bytes(tensor);
  if (host_copy(tensor) == HostCopy::complete) at(tensor).copy = HostCopy::none;
}

void TensorStore::begin(std::int32_t op) {
  for (const std::int32_t tensor : uses_.made_by(op)) arrive(tensor);
  for (const auto& list : {uses_.made_by(op), uses_.read_by(op)}) {
    for (const std::int32_t tensor : list) {
      ++at(tensor).next_user;
      at(tensor).used_by = op;
      outdate_copy(tensor, op);
    }
  }
}

void TensorStore::outdate_copy(std::int32_t tensor, std::int32_t op) {
  Entry& entry = at(tensor);
  if (entry.copy == HostCopy::none || op > life(tensor).last_writer) return;
  entry.stale = entry.copy == HostCopy::under_way;
  if (entry.stale) return;
  entry.copy = HostCopy::none;
  on_host_ -= bytes(tensor);
}

Bytes TensorStore::made_again(std::int32_t op) {
  Bytes sum;
  for (const std::int32_t tensor : uses_.made_by(op)) {
    at(tensor).used_by = op;
    if (is_here(tensor)) continue;
    arrive(tensor);
    sum += bytes(tensor);
  }
  return sum;
}

void TensorStore::drop(std::int32_t tensor) {
  if (host_copy(tensor) == HostCopy::complete) away_ += bytes(tensor);
  change(-bytes(tensor));
  gone(tensor);
}

void TensorStore::copy_out(std::int32_t tensor) {
  at(tensor).copy = HostCopy::under_way;
  on_host_ += bytes(tensor);
  lanes_.add(CopyWay::out, tensor, bytes(tensor));
}

void TensorStore::leave(std::int32_t tensor) {
  if (host_copy(tensor) == HostCopy::complete) return drop(tensor);
  if (host_copy(tensor) == HostCopy::none) copy_out(tensor);
  at(tensor).leaving = true;
  leaving_ += bytes(tensor);
}

void TensorStore::stay(std::int32_t tensor) {
  if (!at(tensor).leaving) return;
  at(tensor).leaving = false;
  leaving_ -= bytes(tensor);
}

void TensorStore::come_back(std::int32_t tensor) {
  arrive(tensor);
  at(tensor).arriving = true;
  change(bytes(tensor));
  lanes_.add(CopyWay::in, tensor, bytes(tensor));
}

void TensorStore::copied(CopyWay way, std::int32_t tensor) {
  if (way == CopyWay::in) {
    at(tensor).arriving = false;
    return;
  }
  Entry& entry = at(tensor);
  if (entry.stale) {
    entry.stale = false;
    entry.copy = HostCopy::none;
    on_host_ -= bytes(tensor);
    return stay(tensor);  // whoever lacks room chooses again
  }
  entry.copy = HostCopy::complete;
  if (is_leaving(tensor)) drop(tensor);
}

}  // namespace tessera
