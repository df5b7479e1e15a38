#include "hw/units/deadline.h"

#include <algorithm>
#include <utility>

#include "hw/units/text.h"

namespace tessera {
namespace {

thread_local Deadline* innermost = nullptr;
thread_local unsigned polls = 0;

}  // namespace

Deadline::Deadline(Seconds limit, std::string doing, std::string setting)
    : limit_(limit),
      doing_(std::move(doing)),
      setting_(std::move(setting)),
      outer_(std::exchange(innermost, this)) {}

Deadline::~Deadline() {
  innermost = outer_;
}

Seconds Deadline::spent() const {
  return Seconds(std::chrono::duration<double>(Clock::now() - begin_).count());
}

Seconds Deadline::left() const {
  if (limit_ <= Seconds(0)) return {};
  return std::max(limit_ - spent(), 1_ms);
}

void Deadline::check() const {
  if (limit_ > Seconds(0) && spent() > limit_)
    throw DeadlineError("gave up after " + to_short_text(limit_) + " (" + setting_ + ") of " +
                        doing_);
  if (outer_ != nullptr) outer_->check();
}

void poll_deadline() {
  constexpr unsigned kPollsPerLook = 256;
  if (innermost != nullptr && ++polls % kPollsPerLook == 0) innermost->check();
}

}  // namespace tessera
