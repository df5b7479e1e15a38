#pragma once

#include <string>

#include "lab/validate/models/score_operators.h"

namespace tessera {

/// For a person: per run the sums of every class and pass with what did not match, then the sums of
/// each GPU.
std::string operator_table(const OperatorValidation& validation);

/// Schema `tessera.operators/1`: runs[], gpus[], summary.
std::string operator_json(const OperatorValidation& validation);

/// One line per run, pass and class.
std::string operator_csv(const OperatorValidation& validation);

}  // namespace tessera
