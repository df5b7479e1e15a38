#include "app/shell/interrupt.h"

#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "app/shell/exit_code.h"
#include "hw/units/replace_file.h"

namespace tessera {
namespace {

volatile std::sig_atomic_t noted = 0;
const char* volatile interrupt_words = "interrupted; no half-written file stays behind";

/// As signal handlers may: whether all of it was written is nobody's business by then.
void write_to_stderr(const char* words) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words, std::strlen(words));
}

extern "C" void note_interrupt(int) {
  if (noted != 0) {
    remove_unfinished_file();
    tell_interrupted();
    std::_Exit(static_cast<int>(ExitCode::interrupted));
  }
  noted = 1;
}

}  // namespace

void say_on_interrupt(const char* words) {
  interrupt_words = words;
}

void tell_interrupted() {
  if (isatty(STDERR_FILENO) == 1) write_to_stderr("\r\x1b[K");
  write_to_stderr(interrupt_words);
  write_to_stderr("\n");
}

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
