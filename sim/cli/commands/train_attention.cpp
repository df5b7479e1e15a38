#include "sim/cli/commands/train_attention.h"

#include <filesystem>

#include "hw/units/replace_file.h"
#include "predictor/half/attention_study.h"
#include "predictor/half/half_memory_study.h"
#include "predictor/training/kernel_csv.h"
#include "sim/cli/home.h"
#include "sim/cli/output.h"

namespace tessera {

void run_train_attention(const std::string& data_folder, const std::string& weights_folder,
                         const std::string& table_folder) {
  const bool shipped = weights_folder.empty();
  std::filesystem::path weights = weights_folder;
  if (shipped) weights = weights_file().parent_path();
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
  const AttentionWeights of_attention = train_attention(attention, lookup);
  const HalfMemoryWeights of_memory = train_half_memory(memory, lookup);
  save_attention(of_attention, weights / "attention.pb");
  save_half_memory(of_memory, weights / "half_memory.pb");
  publish("attention.txt", attention_study(attention, lookup, of_attention));
  publish("half_memory.txt", half_memory_study(memory, lookup, of_memory));
}

}  // namespace tessera
