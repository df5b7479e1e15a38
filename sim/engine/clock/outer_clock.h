#pragma once

#include <functional>

#include "hw/units/quantity.h"

namespace tessera {

/// A clock that others move besides, SimGrid's: SimClock's actions are merged into it.
class OuterClock {
 public:
  virtual ~OuterClock() = default;
  virtual Seconds now() const = 0;
  /// Runs `action` at `date`, which has not passed.
  virtual void at(Seconds date, std::function<void()> action) = 0;
};

}  // namespace tessera
