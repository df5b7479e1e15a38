#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tessera {

/// Something to do later. As std::function, but move-only, and to move one is to copy 32 bytes:
/// captures of up to 16 trivially copyable bytes lie inside, others on the heap.
class Action {
 public:
  Action() = default;
  Action(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): "no action"
  template <class Call>
  requires(!std::same_as<std::remove_cvref_t<Call>, Action> && std::invocable<Call&>)
      Action(Call call) {  // NOLINT(google-explicit-constructor): lambdas are passed as actions
    if constexpr (sizeof(Call) <= kRoom && alignof(Call) <= alignof(void*) &&
                  std::is_trivially_copyable_v<Call>) {
      std::construct_at(reinterpret_cast<Call*>(room_), std::move(call));
      call_ = [](std::byte* room) { (*std::launder(reinterpret_cast<Call*>(room)))(); };
    } else {
      Call* const kept = new Call(std::move(call));
      std::memcpy(room_, &kept, sizeof(kept));
      call_ = [](std::byte* room) { (*kept_in<Call>(room))(); };
      drop_ = [](std::byte* room) { delete kept_in<Call>(room); };
    }
  }
  Action(Action&& other) noexcept { take(other); }
  Action& operator=(Action&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  Action(const Action&) = delete;
  Action& operator=(const Action&) = delete;
  ~Action() { drop(); }

  explicit operator bool() const { return call_ != nullptr; }
  void operator()() { call_(room_); }
  /// Has the processor fetch what the action is about to change: most capture a pointer to it
  /// first. Of a thousand GPUs it has left the caches since it was used last. A hint; any bits will
  /// do.
  void prefetch() const {
    constexpr std::uintptr_t kCacheLine = 64;
    std::uintptr_t target = 0;
    std::memcpy(&target, room_, sizeof(target));
    for (const std::uintptr_t at : {target - kCacheLine, target, target + kCacheLine})
      __builtin_prefetch(reinterpret_cast<const void*>(at));
  }

 private:
  static constexpr std::size_t kRoom = 16;

  template <class Call>
  static Call* kept_in(const std::byte* room) {
    Call* kept = nullptr;
    std::memcpy(&kept, room, sizeof(kept));
    return kept;
  }
  void take(Action& other) {
    call_ = std::exchange(other.call_, nullptr);
    drop_ = std::exchange(other.drop_, nullptr);
    std::memcpy(room_, other.room_, kRoom);
  }
  void drop() {
    if (drop_ != nullptr) drop_(room_);
  }

  void (*call_)(std::byte*) = nullptr;
  void (*drop_)(std::byte*) = nullptr;
  alignas(void*) std::byte room_[kRoom] = {};
};

}  // namespace tessera
