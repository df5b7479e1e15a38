#include "predictor/scored_files.h"

#include <algorithm>
#include <fstream>

#include "hw/units/input_error.h"
#include "predictor/training/kernel_csv.h"

namespace tessera {

KernelFileFormat format_of(const std::filesystem::path& csv) {
  std::ifstream in(csv, std::ios::binary);
  std::string header;
  if (!std::getline(in, header))
    return KernelFileFormat::operators;  // its reader says what is wrong
  if (header.ends_with('\r')) header.pop_back();
  const CsvFields fields = split_fields(header);
  const auto has = [&](std::string_view column) {
    return std::find(fields.values.begin(),
                     fields.values.begin() + static_cast<std::ptrdiff_t>(fields.count),
                     column) != fields.values.begin() + static_cast<std::ptrdiff_t>(fields.count);
  };
  if (has("kv_heads") && has("seq_q")) return KernelFileFormat::attention;
  if (has("bytes_min")) return KernelFileFormat::memory_bound;
  return KernelFileFormat::operators;
}

void fill(KernelScore& score, const std::function<Seconds()>& predict) {
  try {
    score.predicted_us = predict().value() * 1e6;
  } catch (const InputError& error) {
    score.skipped = error.problems().front().text();
  }
}

}  // namespace tessera
