#pragma once

#include <csignal>

namespace tessera {

/// What Ctrl-C says before the program ends, for work that keeps what it has done: a line without
/// its end, which lives as long as the program. By default that nothing half-written stays.
void say_on_interrupt(const char* words);

/// Writes those words to stderr; for a handler of signals.
void tell_interrupted();

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
