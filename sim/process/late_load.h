#pragma once

namespace tessera {

/// What takes long to load and few calls need: a process loads it when it first does. Once a forked
/// process has, its parent loads it ahead of its next fork, so that each of hundreds of processes
/// does not.
struct LateLoad {
  bool (*is_loaded)() = nullptr;
  void (*load)() = nullptr;
};

/// That of this program; none until it is set.
LateLoad& late_load();

}  // namespace tessera
