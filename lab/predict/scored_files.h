#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "lab/predict/evaluation.h"

namespace tessera {

/// What score_kernels was asked for.
struct ScoreRequest {
  const std::filesystem::path& csv;
  const PredictorWeights& weights;
  PredictorForm form;
  const GpuLookup& lookup;
};

/// The format of the file as its header shows it.
enum class KernelFileFormat : std::uint8_t { operators, attention, memory_bound, serving };
KernelFileFormat format_of(const std::filesystem::path& csv);

/// Rows, GPUs and names of groups of a file in one of the formats, with predictions.
KernelScores score_operators(const ScoreRequest& request);
KernelScores score_attention(const ScoreRequest& request);
KernelScores score_memory_bound(const ScoreRequest& request);
KernelScores score_serving(const ScoreRequest& request);

/// A new row of `scores`, whose GPU and group are among theirs; it is not predicted yet.
KernelScore& add_score(KernelScores& scores, std::string_view line, const std::string& gpu,
                       const std::string& group, double seconds);

/// Throws InputError for a form that has no nets for 16-bit kernels.
void require_16_bit_form(PredictorForm form);

/// A row that could not be read.
KernelScore unread(std::string_view line, std::string reason);

/// The prediction [s] in microseconds, or why there is none.
void fill(KernelScore& score, const std::function<Seconds()>& predict);

}  // namespace tessera
