#include "sim/longrun/detection.h"

#include <algorithm>
#include <limits>

#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr Seconds kNever = Seconds(std::numeric_limits<double>::infinity());

bool ends_the_process(Component component) {
  return component != Component::nic && component != Component::link &&
         component != Component::network_switch;
}

Seconds without_progress(const Watch& watch, Seconds step) {
  return watch.progress_steps > 0 ? step * watch.progress_steps : kNever;
}

Seconds noticed_after(const FailureClass& of, const Watch& watch, Seconds step) {
  if (of.is_slow())
    return of.slowdown > watch.progress_steps ? without_progress(watch, step) : kNever;
  Seconds first = without_progress(watch, step);
  if (watch.collective_timeout.value() > 0) first = std::min(first, watch.collective_timeout);
  if (watch.heartbeat.value() > 0 && ends_the_process(of.component))
    first = std::min(first, watch.heartbeat);
  return first;
}

}  // namespace

FailureClass watched(FailureClass of, const Watch& watch, Seconds step) {
  if (of.announced || of.is_silent()) return of;
  const Seconds noticed = noticed_after(of, watch, step);
  if (noticed < kNever) of.detection = noticed;
  return of;
}

Seconds detection_of_recorded(const Watch& watch, Seconds step) {
  const FailureClass any{.name = "", .component = Component::link};
  const Seconds noticed = noticed_after(any, watch, step);
  return noticed < kNever ? noticed : Seconds(0);
}

std::string text_of(const Watch& watch) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (watch.collective_timeout.value() > 0)
    add("time-out " + to_short_text(watch.collective_timeout));
  if (watch.heartbeat.value() > 0) add("heartbeat " + to_short_text(watch.heartbeat));
  if (watch.progress_steps > 0) add(formatted("%g steps without progress", watch.progress_steps));
  return text;
}

}  // namespace tessera
