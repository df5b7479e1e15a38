#pragma once

#include <string>

namespace tessera {

/// `tessera train --model attention`: fits fused attention to `data_folder`/kernels/attention.csv.
/// Its section of the weights file `out` is replaced (empty: of the shipped one), tables go to
/// attention.txt in `table_folder` (empty: results/predictor with the shipped weights, else
/// nowhere). Throws InputError for missing or malformed data.
void run_train_attention(const std::string& data_folder, const std::string& out,
                         const std::string& table_folder);

}  // namespace tessera
