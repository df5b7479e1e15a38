#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/units/quantity.h"
#include "lab/validate/models/model_runs.h"
#include "workloads/graph/strided_shape.h"

namespace tessera {

/// One operator of a model that was timed alone, launch included: a row of a file in the format of
/// measurements/models/fp32_per_op.csv.
struct TimedOperator {
  std::string where;  ///< file:line
  std::string node;   ///< name in the traced graph
  std::string op;     ///< function name, or "module:" and the path of a module
  std::vector<Sizes> inputs;
  Sizes output;
  Seconds forward;
  std::optional<Seconds> backward;             ///< its autograd nodes together
  std::optional<Seconds> gradient_accumulate;  ///< adding to .grad
};

/// The operators of one transformer layer, the embedding and the head, in traced order.
struct OperatorRun {
  ModelRun run;  ///< one GPU; nothing measured as a whole
  std::vector<TimedOperator> operators;
};

/// Reads the file. Columns gpu, model, mode, seq_len, batch, node, op, input_shapes, output_shape
/// and forward_us are needed, backward_us and grad_accumulate_us optional, others ignored. Rows
/// with the same gpu, model, mode, seq_len and batch are one run, wherever they stand; runs come in
/// the order of their first rows. Throws InputError with every malformed row as file:line.
/// Rows without a fault make the runs; a run with a malformed row has a fault where that does not
/// end the reading.
std::vector<OperatorRun> read_operator_runs(const std::filesystem::path& file,
                                            BadRows bad_rows = BadRows::refuse);

}  // namespace tessera
