#pragma once

#include <csignal>

namespace tessera {

/// As long as it lives, the first Ctrl-C is noted, for work that prints what it has found; a second
/// one ends the program as ever. One at a time.
class InterruptNote {
 public:
  InterruptNote();
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

  bool interrupted() const;

 private:
  struct sigaction before_ {};
};

}  // namespace tessera
