#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/validate/runs/training_runs.h"
#include "sim/config/files/csv.h"
#include "tests/hw/units/scratch.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera::test {

using Fields = std::map<std::string, std::string>;

/// A Llama of four layers on eight H100 in one node, with `changes`.
inline Fields llama_row(const Fields& changes = {}) {
  Fields fields{{"id", "a"},
                {"gpu", "H100-SXM5-80GB"},
                {"n_gpus", "8"},
                {"gpus_per_node", "8"},
                {"framework", "Megatron-Core"},
                {"precision", "bf16"},
                {"model", "small"},
                {"family", "llama"},
                {"layers", "4"},
                {"hidden", "1024"},
                {"heads", "16"},
                {"vocab", "32000"},
                {"seq_len", "1024"},
                {"tp", "1"},
                {"pp", "1"},
                {"dp", "8"},
                {"micro_batch", "1"},
                {"global_batch", "8"},
                {"step_time_s", "0.1"}};
  for (const auto& [column, value] : changes) fields[column] = value;
  return fields;
}

/// A file in a folder of the running test's own: corrections lie beside the runs that they correct,
/// and hold for all there.
inline std::filesystem::path planted(const std::string& name, const std::string& text) {
  static std::map<std::string, ScratchFolder> folders;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return folders[std::string(test.test_suite_name()) + "." + test.name()].write(name, text);
}

/// Header and one row.
inline std::string csv_of(const Fields& fields) {
  std::string header, row;
  for (const auto& [column, value] : fields) {
    header += (header.empty() ? "" : ",") + column;
    row += (row.empty() && header == column ? "" : ",") + csv_field(value);
  }
  return header + "\n" + row + "\n";
}

inline TrainingRuns read_row(const Fields& fields, const TrainingRunReading& reading = {}) {
  return read_training_runs(planted("runs.csv", csv_of(fields)), shipped_rules(), reading);
}

/// Why the row is skipped; empty where it is read.
inline std::string obstacle(const Fields& changes) {
  const TrainingRuns runs = read_row(llama_row(changes), {.bad_rows = BadRows::skip});
  return runs.skipped.empty() ? std::string() : runs.skipped.at(0).reason;
}

}  // namespace tessera::test
