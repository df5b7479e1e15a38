#include "lab/validate/models/model_runs.h"

#include <charconv>

#include "lab/validate/row_reader.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

/// "single", or sizes behind tp, pp and dp in any order: "dp4", "tp2pp2". Nothing for anything
/// else.
std::optional<ParallelLayout> layout_of(const std::string& text) {
  ParallelLayout layout;
  if (text == "single") return layout;
  std::size_t position = 0;
  while (position + 2 < text.size()) {
    const std::string kind = text.substr(position, 2);
    int* size = kind == "tp"   ? &layout.tensor
                : kind == "pp" ? &layout.pipeline
                : kind == "dp" ? &layout.data
                               : nullptr;
    if (!size) return std::nullopt;
    const char* begin = text.data() + position + 2;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), *size);
    if (error != std::errc() || *size < 1) return std::nullopt;
    position = static_cast<std::size_t>(end - text.data());
  }
  if (text.empty() || position != text.size()) return std::nullopt;
  return layout;
}

ModelRun read_run(const CsvTable& table, const CsvTable::Row& row, std::vector<Problem>& problems) {
  RowReader reader(table, row, problems);
  ModelRun run{.where = table.where(row), .gpu = reader.text("gpu")};
  run.n_gpus = static_cast<int>(reader.count("n_gpus", 1));
  run.parallelism = reader.text("parallelism");
  run.micro_batches = static_cast<int>(reader.count("micro_batches", 1));
  run.model = reader.text("model");
  run.mode = reader.text("mode");
  run.seq_len = reader.count("seq_len", 0);
  run.batch = reader.count("batch", 0);
  run.measured = reader.time("step_ms", TimeUnit::milliseconds);
  run.published_prediction = reader.time("neusight_step_ms", TimeUnit::milliseconds);
  const auto layout = layout_of(run.parallelism);
  if (layout) run.layout = *layout;
  if (!layout) reader.complain("parallelism", "write single, or sizes such as dp4, tp2pp2");
  return run;
}

}  // namespace

std::vector<ModelRun> read_model_runs(const std::filesystem::path& file, BadRows bad_rows) {
  const CsvTable table = read_csv(file);
  require_columns(table,
                  {"gpu", "n_gpus", "parallelism", "model", "mode", "seq_len", "batch", "step_ms"});
  return read_rows<ModelRun>(table, bad_rows,
                             [&](const CsvTable::Row& row, std::vector<Problem>& problems) {
                               return read_run(table, row, problems);
                             });
}

}  // namespace tessera
