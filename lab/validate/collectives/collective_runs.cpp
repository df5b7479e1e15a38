#include "lab/validate/collectives/collective_runs.h"

#include "hw/units/input_error.h"
#include "lab/validate/row_reader.h"
#include "lab/validate/runs/launch_style.h"
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

/// Files write nccl-tests-threads for any single process. aiconfigurator starts nccl-tests with a
/// thread for each GPU (-t, collector/collect_nccl.py; recalled), others as its pages show, with
/// one thread for all (-g).
std::string launch_of(RowReader& reader) {
  std::string launch = reader.text("launch");
  const bool a_thread_each = reader.text("source").starts_with("aiconfigurator");
  return launch == "nccl-tests-threads" && !a_thread_each ? kOneThread : launch;
}

CollectiveRun read_run(const CsvTable& table, const CsvTable::Row& row,
                       std::vector<Problem>& problems) {
  RowReader reader(table, row, problems);
  CollectiveRun run{.where = table.where(row)};
  run.system = reader.text("system");
  run.gpu = reader.text("gpu");
  run.intra_link = reader.text("intra_link");
  run.inter_link = reader.text("inter_link");
  run.dtype = reader.text("dtype");
  run.launch = launch_of(reader);
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
                                                BadRows bad_rows) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"gpu", "n_gpus", "n_nodes", "collective", "bytes", "time_us"});
  std::vector<CollectiveRun> runs;
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    std::vector<Problem> of_row;
    runs.push_back(read_run(table, row, of_row));
    runs.back().fault = reason_of(of_row);
    problems.insert(problems.end(), of_row.begin(), of_row.end());
  }
  if (!problems.empty() && bad_rows == BadRows::refuse) throw InputError(std::move(problems));
  return runs;
}

}  // namespace tessera
