#include "app/shell/interrupt.h"

#include <cstdlib>

#include "app/shell/exit_code.h"
#include "hw/units/replace_file.h"

namespace tessera {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note_interrupt(int) {
  if (noted != 0) {
    remove_unfinished_file();
    std::_Exit(static_cast<int>(ExitCode::interrupted));
  }
  noted = 1;
}

}  // namespace

InterruptNote::InterruptNote() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  sigaction(SIGINT, &action, &before_);
}

InterruptNote::~InterruptNote() {
  sigaction(SIGINT, &before_, nullptr);
}

bool InterruptNote::interrupted() const {
  return noted != 0;
}

}  // namespace tessera
