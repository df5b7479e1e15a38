#include "sim/engine/memory/residency.h"

#include <algorithm>

namespace tessera {

bool Residency::is_used_by(std::int32_t tensor, std::int32_t op) const {
  return op >= 0 && std::ranges::find(lives_.of_op(op), tensor) != lives_.of_op(op).end();
}

void Residency::use(std::int32_t tensor) {
  if (place(tensor) == Place::nowhere) on_device_.push_back(tensor);
  at(tensor).place = Place::device;
  ++at(tensor).next_user;
  ++at(tensor).using_now;
}

void Residency::release(std::int32_t tensor) {
  --at(tensor).using_now;
  if (at(tensor).next_user < life(tensor).users.size()) return;
  at(tensor).place = Place::nowhere;
  std::erase(on_device_, tensor);
}

void Residency::leave(std::int32_t tensor) {
  at(tensor).place = Place::leaving;
  host_bytes_ += bytes(tensor);
  leaving_bytes_ += bytes(tensor);
  away_.push_back(tensor);
}

void Residency::stay(std::int32_t tensor) {
  at(tensor).place = Place::device;
  host_bytes_ -= bytes(tensor);
  leaving_bytes_ -= bytes(tensor);
  std::erase(away_, tensor);
}

void Residency::left(std::int32_t tensor) {
  at(tensor).place = Place::host;
  leaving_bytes_ -= bytes(tensor);
  std::erase(on_device_, tensor);
}

void Residency::come_back(std::int32_t tensor) {
  at(tensor).place = Place::returning;
  on_device_.push_back(tensor);
}

void Residency::came_back(std::int32_t tensor) {
  at(tensor).place = Place::device;
  host_bytes_ -= bytes(tensor);
  std::erase(away_, tensor);
}

void Residency::give_up(std::int32_t tensor) {
  at(tensor).place = Place::given_up;
  std::erase(on_device_, tensor);
}

void Residency::made_again(std::int32_t tensor) {
  at(tensor).place = Place::device;
  at(tensor).made_again = true;
  on_device_.push_back(tensor);
}

}  // namespace tessera
