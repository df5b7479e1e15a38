#include "lab/cli/commands/train_tensor_gemm.h"

#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/replace_file.h"
#include "lab/cli/commands/trained_section.h"
#include "lab/fit/studies/tensor_study.h"
#include "lab/validate/studies/tensor_study_text.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {

void run_train_tensor_gemm(const std::string& data_folder, const std::string& out,
                           const std::string& table_folder) {
  const TrainTarget target = train_target(out, table_folder);
  const TensorData data =
      read_tensor_rows(kernel_file(data_folder, "tensor_core.csv"), shipped_gpu_lookup());
  const TensorTraining training = train_tensor_gemm(data);
  const std::string text = tensor_study_text(training.weights, study_tensor_gemm(data, training));
  PredictorWeights trained;
  trained.tensor_gemm = training.weights;
  write_sections(trained, target.weights);
  print(text);
  if (!target.tables.empty()) replace_file(target.tables / "tensor_gemm.txt", text);
}

}  // namespace tessera
