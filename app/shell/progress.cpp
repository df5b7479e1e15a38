#include "app/shell/progress.h"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include "app/shell/output.h"
#include "hw/units/formatted.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBarWidth = 20;
constexpr double kShownEvery_s = 0.1;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string progress_line(std::size_t done, std::size_t all, const std::string& noun,
                          double elapsed_s) {
  const std::size_t filled = all > 0 ? kBarWidth * done / all : kBarWidth;
  std::string line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
                     std::to_string(done) + "/" + std::to_string(all) + " " + noun;
  if (done == 0 || elapsed_s <= 0) return line;
  const double rate = static_cast<double>(done) / elapsed_s;
  return line + formatted(", %.*f/s, %.0f s left", rate < 10 ? 1 : 0, rate,
                          static_cast<double>(all - done) / rate);
}

StatusLine::StatusLine() : on_terminal_(isatty(STDERR_FILENO) != 0) {}

StatusLine::~StatusLine() {
  if (shows_) std::fputs("\r\x1b[K", stderr);
}

bool StatusLine::is_due() const {
  return on_terminal_ && (!shows_ || seconds_between(shown_, Clock::now()) >= kShownEvery_s);
}

void StatusLine::show(const std::string& text) {
  if (!on_terminal_) return;
  std::fprintf(stderr, "\r%s\x1b[K", text.substr(0, width_of(STDERR_FILENO) - 1).c_str());
  std::fflush(stderr);
  shown_ = Clock::now();
  shows_ = true;
}

void StatusLine::tell(const std::string& text) const {
  constexpr double kQuiet_s = 10;
  if (on_terminal_ || seconds_between(begin_, Clock::now()) < kQuiet_s) return;
  std::fprintf(stderr, "%s\n", text.c_str());
}

void StatusLine::show(std::size_t done, std::size_t all, const std::string& noun) {
  show(progress_line(done, all, noun, seconds_between(begin_, Clock::now())));
}

Progress::Progress(std::string noun)
    : noun_(std::move(noun)),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      shown_(start_) {}

void Progress::show(std::size_t done, std::size_t all) {
  const Clock::time_point now = Clock::now();
  const double elapsed_s = seconds_between(start_, now);
  if (on_terminal_) {
    if (done < all && seconds_between(shown_, now) < kShownEvery_s) return;
    shown_ = now;
    std::fprintf(stderr, "\r%s\x1b[K%s", progress_line(done, all, noun_, elapsed_s).c_str(),
                 done == all ? "\n" : "");
    return;
  }
  const std::size_t tenths = all > 0 ? 10 * done / all : 10;
  if (tenths == tenths_ || elapsed_s < 1) return;
  tenths_ = tenths;
  std::fprintf(stderr, "%s\n",
               progress_line(done, all, noun_, elapsed_s).substr(kBarWidth + 3).c_str());
}

}  // namespace tessera
