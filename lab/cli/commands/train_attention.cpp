#include "lab/cli/commands/train_attention.h"

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands/trained_section.h"
#include "lab/fit/studies/attention_study.h"
#include "lab/fit/studies/half_memory_comparison.h"
#include "lab/fit/studies/half_memory_study.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

void run_train_attention(const std::string& data_folder, const std::string& out,
                         const std::string& table_folder) {
  const TrainTarget target = train_target(out, table_folder);
  const auto publish = [&](const char* name, const std::string& text) {
    print(text + "\n");
    if (!target.tables.empty()) replace_file(target.tables / name, text);
  };
  const GpuLookup lookup = shipped_gpu_lookup();
  const AttentionTable attention = read_attention(kernel_file(data_folder, "attention.csv"));
  const HalfMemoryTable memory =
      read_half_memory(kernel_file(data_folder, "memory_bound_fp16.csv"));
  PredictorWeights trained;
  trained.attention = train_attention(attention, lookup);
  trained.half_memory = train_half_memory(memory, lookup);
  write_sections(trained, target.weights);
  const PredictorWeights all = load_weights(target.weights);
  publish("attention.txt", attention_study(attention, lookup, *all.attention));
  publish("half_memory.txt",
          half_memory_study(memory, lookup, *all.half_memory) +
              (all.trained() ? half_memory_comparison(memory, lookup, all) : ""));
}

}  // namespace tessera
