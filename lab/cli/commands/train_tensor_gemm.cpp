#include "lab/cli/commands/train_tensor_gemm.h"

#include <filesystem>

#include <spdlog/spdlog.h>

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/fit/studies/tensor_study.h"
#include "lab/validate/studies/tensor_study_text.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

void run_train_tensor_gemm(const std::string& data_folder, const std::string& out,
                           const std::string& table_folder) {
  const bool shipped = out.empty();
  const std::filesystem::path file = shipped ? weights_file() : std::filesystem::path(out);
  PredictorWeights weights = load_weights_if_any(file);
  const TensorData data =
      read_tensor_rows(kernel_file(data_folder, "tensor_core.csv"), shipped_gpu_lookup());
  const TensorTraining training = train_tensor_gemm(data);
  const std::string text = tensor_study_text(training.weights, study_tensor_gemm(data, training));
  std::filesystem::path folder = table_folder;
  if (shipped && folder.empty()) folder = home() / "results" / "predictor";
  weights.tensor_gemm = training.weights;
  save_weights(weights, file);
  print(text);
  if (!folder.empty()) replace_file(folder / "tensor_gemm.txt", text);
  spdlog::info("wrote {}", file.string());
}

}  // namespace tessera
