#pragma once

#include <string>

namespace tessera {

/// `tessera train --model attention`: fits fused attention and 16-bit memory-bound kernels to
/// `data_folder`/kernels/{attention,memory_bound_fp16}.csv. Their sections of the weights
/// file `out` are replaced (empty: of the shipped one), tables go to attention.txt and
/// half_memory.txt in `table_folder` (empty: results/predictor with the shipped weights, else
/// nowhere). Throws InputError for missing or malformed data and, weights written but no table,
/// where another section of the file is of another version: the tables compare with FP32 kernels.
void run_train_attention(const std::string& data_folder, const std::string& out,
                         const std::string& table_folder);

}  // namespace tessera
