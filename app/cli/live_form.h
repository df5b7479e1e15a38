#pragma once

#include <string>
#include <vector>

#include "app/html/live_page.h"
#include "app/serve/server.h"
#include "sim/config/catalog.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// The fields that matter to a step, with what stands in `scenario`, which was read from
/// `described` ("gpt2-large_4xh100_dp4").
LiveForm live_form(const std::string& described, const Scenario& scenario, const Catalog& catalog);

/// The overrides in a request: each "PATH=VALUE" of a field of the form, with one of its values or
/// a whole number. Throws InputError for anything else: a page cannot name files.
std::vector<std::string> live_overrides(const LiveForm& form, const RequestParameters& parameters);

}  // namespace tessera
