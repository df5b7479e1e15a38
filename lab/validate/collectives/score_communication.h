#pragma once

#include <filesystem>

#include "lab/predict/evaluation.h"
#include "sim/config/catalog.h"

namespace tessera {

/// Whether the columns of a file say that it holds collectives of one server that no NCCL ran:
/// custom all-reduces (n_gpus, bytes) or the exchanges of experts (num_tokens, hidden, top_k).
bool holds_communication(const std::filesystem::path& csv);

/// Predicts every row of such a file by the nearest collective of NCCL: an all-reduce of as many
/// bytes, an even all-to-all of as many as a rank sends. The fabric is that of the catalog's first
/// cluster of one node with the row's GPU that is large enough. Rows that cannot be read or have no
/// cluster are skipped with the reason; throws InputError where all are.
KernelScores score_communication(const std::filesystem::path& csv, const Catalog& catalog);

}  // namespace tessera
