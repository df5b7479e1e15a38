#include "lab/validate/collectives/collective_runs.h"

#include "lab/validate/row_reader.h"
#include "sim/collectives/collective_names.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

std::int64_t read_bytes(RowReader& reader) {
  const std::string text = reader.text("bytes");
  std::int64_t bytes = 0;
  try {
    std::size_t read = 0;
    bytes = std::stoll(text, &read);
    if (read != text.size()) bytes = 0;
  } catch (const std::exception&) {
    bytes = 0;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  if (bytes < 1 || bytes > kMost) reader.complain("bytes", "write a number of bytes, 1 to 2^50");
  return bytes;
}

/// The rules tell apart what files call nccl-tests-threads: one thread for all GPUs, or one each.
std::string launch_of(const CsvTable& table, const CsvTable::Row& row, const RowRules& rules) {
  const RowFields fields = rules.meaning_of(stated_fields(table, row)).fields;
  const auto style = fields.find("launch_style");
  const auto launch = style != fields.end() ? style : fields.find("launch");
  return launch == fields.end() ? "" : launch->second;
}

CollectiveRun read_run(const CsvTable& table, const CsvTable::Row& row, const RowRules& rules,
                       std::vector<Problem>& problems) {
  RowReader reader(table, row, problems);
  CollectiveRun run{.where = table.where(row)};
  run.system = reader.text("system");
  run.gpu = reader.text("gpu");
  run.intra_link = reader.text("intra_link");
  run.inter_link = reader.text("inter_link");
  run.dtype = reader.text("dtype");
  run.launch = launch_of(table, row, rules);
  run.ranks = static_cast<int>(reader.count("n_gpus", 0));
  run.nodes = static_cast<int>(reader.count("n_nodes", 0));
  if (run.ranks == 1 && reader.text("n_gpus") == "1")
    reader.complain("n_gpus", "a collective needs at least two GPUs");
  const auto kind = collective_kind_of(reader.text("collective"));
  if (kind) run.collective = *kind;
  if (!kind)
    reader.complain(
        "collective",
        "write all_reduce, all_gather, reduce_scatter, broadcast, alltoall or sendrecv");
  run.bytes = Bytes(read_bytes(reader));
  const auto time = reader.time("time_us", TimeUnit::microseconds);
  if (time) run.measured = *time;
  if (!time) reader.complain("time_us", "write the measured time in microseconds");
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    run.columns.emplace_back(table.columns[i], row.fields[i]);
  return run;
}

}  // namespace

const std::string& CollectiveRun::field(const std::string& column) const {
  static const std::string kNone;
  for (const auto& [name, value] : columns) {
    if (name == column) return value;
  }
  return kNone;
}

std::vector<CollectiveRun> read_collective_runs(const std::filesystem::path& file,
                                                const RowRules& rules, BadRows bad_rows) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"gpu", "n_gpus", "n_nodes", "collective", "bytes", "time_us"});
  return read_rows<CollectiveRun>(table, bad_rows,
                                  [&](const CsvTable::Row& row, std::vector<Problem>& problems) {
                                    return read_run(table, row, rules, problems);
                                  });
}

}  // namespace tessera
