#include "lab/cli/commands/train_attention.h"

#include <filesystem>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/fit/studies/attention_study.h"
#include "lab/fit/studies/half_memory_comparison.h"
#include "lab/fit/studies/half_memory_study.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

void run_train_attention(const std::string& data_folder, const std::string& out,
                         const std::string& table_folder) {
  const bool shipped = out.empty();
  const std::filesystem::path file = shipped ? weights_file() : std::filesystem::path(out);
  PredictorWeights weights = load_weights_if_any(file);
  std::filesystem::path tables = table_folder;
  if (shipped && tables.empty()) tables = home() / "results" / "predictor";
  const auto publish = [&](const char* name, const std::string& text) {
    print(text + "\n");
    if (!tables.empty()) replace_file(tables / name, text);
  };
  const GpuLookup lookup = shipped_gpu_lookup();
  const AttentionTable attention = read_attention(kernel_file(data_folder, "attention.csv"));
  const HalfMemoryTable memory =
      read_half_memory(kernel_file(data_folder, "memory_bound_fp16.csv"));
  weights.attention = train_attention(attention, lookup);
  weights.half_memory = train_half_memory(memory, lookup);
  save_weights(weights, file);
  publish("attention.txt", attention_study(attention, lookup, *weights.attention));
  publish("half_memory.txt",
          half_memory_study(memory, lookup, *weights.half_memory) +
              (weights.trained() ? half_memory_comparison(memory, lookup, weights) : ""));
}

}  // namespace tessera
