#pragma once

#include <string>

namespace tessera {

/// `tessera train --model tensor-gemm`: fits products of bf16 and fp16 to tensor_core.csv of
/// `data_folder` (or of its folder kernels/). Their section of the weights file `out` is replaced
/// (empty: of the shipped one), the table goes to tensor_gemm.txt in `table_folder` (empty:
/// results/predictor with the shipped weights, else nowhere). Throws InputError for missing or
/// malformed data.
void run_train_tensor_gemm(const std::string& data_folder, const std::string& out,
                           const std::string& table_folder);

}  // namespace tessera
