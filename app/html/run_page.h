#pragma once

#include <string>

#include "sim/longrun/run_answer.h"

namespace tessera {

/// A long run as an HTML page: effective time, goodput, bill, where the time of every day went,
/// what each cause took.
std::string run_page(const RunAnswer& answer, const std::string& tessera_version);

}  // namespace tessera
