#pragma once

#include <optional>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// "125MBps", "1Gbps", "1.25GiBps", a bare number in bytes per second; nothing for anything else
/// and for what is not above zero.
std::optional<BytesPerSecond> simgrid_bandwidth(const std::string& text);

/// "50us", "1ms", a bare number in seconds; nothing for anything else and for negative ones.
std::optional<Seconds> simgrid_time(const std::string& text);

}  // namespace tessera
