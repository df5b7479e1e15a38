#include "lab/cli/commands/train_attention.h"

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands/trained_section.h"
#include "lab/fit/studies/attention_study.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

void run_train_attention(const std::string& data_folder, const std::string& out,
                         const std::string& table_folder) {
  const TrainTarget target = train_target(out, table_folder);
  const GpuLookup lookup = shipped_gpu_lookup();
  const AttentionTable attention = read_attention(kernel_file(data_folder, "attention.csv"));
  PredictorWeights trained;
  trained.attention = train_attention(attention, lookup);
  write_sections(trained, target.weights);
  const std::string text = attention_study(attention, lookup, *trained.attention);
  print(text + "\n");
  if (!target.tables.empty()) replace_file(target.tables / "attention.txt", text);
}

}  // namespace tessera
