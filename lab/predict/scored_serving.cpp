// Files of operators that servers run beside plain products and attention.
#include <algorithm>
#include <map>
#include <optional>

#include "hw/units/input_error.h"
#include "lab/fit/tensor/measured_table.h"
#include "lab/predict/scored_files.h"
#include "lab/predict/served_kernels.h"
#include "lab/predict/serving_kernels.h"
#include "lab/predict/source_spreads.h"

namespace tessera {
namespace {

using Reader = std::optional<ServingCall> (*)(MeasuredTable&);

/// Columns of one kind of file, and what reads its rows.
struct Layout {
  std::vector<std::string> columns, optional;
  Reader read;
};

Layout layout_of(const std::filesystem::path& csv) {
  const MeasuredTable head(csv, {"gpu", "latency_us"}, {"part", "top_k", "d_conv", "groups"});
  if (head.has(2)) return {kMlaColumns, kMlaOptional, read_mla_call};
  if (head.has(3)) return {kExpertColumns, kExpertOptional, read_expert_call};
  if (head.has(4)) return {kConvolution1dColumns, kConvolution1dOptional, read_convolution_1d_call};
  if (head.has(5)) return {kGroupedColumns, kGroupedOptional, read_grouped_call};
  return {kQuantizeColumns, kQuantizeOptional, read_quantize_call};
}

/// Predictors by GPU and software.
class ServingPredictors {
 public:
  explicit ServingPredictors(const ScoreRequest& request) : request_(request) {}

  ServedTime timed(const ServingCall& call) {
    const std::pair key(call.gpu, call.stack);
    auto found = servers_.find(key);
    if (found == servers_.end())
      found = servers_.emplace(key, ServedKernels(request_, request_.lookup(call.gpu), call.stack))
                  .first;
    found->second.keep_warm(call.warm_sets);
    return found->second.timed(call.kernels);
  }

 private:
  const ScoreRequest& request_;
  std::map<std::pair<std::string, std::string>, ServedKernels> servers_;
};

std::uint16_t position_in(const std::string& name, std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<std::uint16_t>(i);
  names.push_back(name);
  return static_cast<std::uint16_t>(names.size() - 1);
}

}  // namespace

KernelScores score_serving(const ScoreRequest& request) {
  const Layout layout = layout_of(request.csv);
  MeasuredTable table(request.csv, layout.columns, layout.optional);
  KernelScores scores{.text = table.file_text(), .header = table.header()};
  ServingPredictors predictors(request);
  while (table.next()) {
    const std::size_t bad = table.bad_rows().size();
    std::optional<ServingCall> call = layout.read(table);
    const auto seconds = table.optional_microseconds(1);
    if (!call || !seconds || table.bad_rows().size() > bad) continue;
    call->gpu = table.text(0);
    KernelScore& score =
        scores.rows.emplace_back(KernelScore{.line = table.row(),
                                             .gpu = position_in(call->gpu, scores.gpus),
                                             .group = position_in(call->name, scores.ops),
                                             .measured_us = *seconds * 1e6,
                                             .predicted_as = call->stand_in,
                                             .skipped = {}});
    fill(score, [&] {
      const ServedTime served = predictors.timed(*call);
      score.half_width = log_half_width(with_source(served.spread, call->source_spread));
      return served.time;
    });
  }
  for (const BadRow& row : table.bad_rows()) scores.rows.push_back(unread(row.line, row.reason));
  return scores;
}

}  // namespace tessera
