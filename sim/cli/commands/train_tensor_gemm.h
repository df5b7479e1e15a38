#pragma once

#include <string>

namespace tessera {

/// `tessera train --model tensor-gemm`: fits products of bf16 and fp16 to tensor_core.csv of
/// `data_folder` (or of its folder kernels/). Weights go to `weights_file` (empty: the shipped
/// ones), the table to tensor_gemm.txt in `table_folder` (empty: results/predictor with the shipped
/// weights, else nowhere). Throws InputError for missing or malformed data.
void run_train_tensor_gemm(const std::string& data_folder, const std::string& weights_file,
                           const std::string& table_folder);

}  // namespace tessera
