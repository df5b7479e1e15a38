#pragma once

#include <string>

#include "sim/remat/io/instance.h"
#include "sim/remat/io/json_fields.h"

namespace tessera::remat {

Instance read_golden(const JsonFields& file, int number);
Instance read_monet(const JsonFields& file);
Instance read_poet(const JsonFields& file);
Instance read_operators(const JsonFields& file);
/// `text`: the whole log; `file` names it in complaints.
Instance read_dtr_log(const std::string& text, const std::string& file);

/// Seconds to whole nanoseconds, to the nearest.
Nanoseconds to_nanoseconds(double seconds);

}  // namespace tessera::remat
