#pragma once

#include <cstdint>

namespace tessera {

/// Vocabulary after Megatron's padding to a multiple of `multiple` (its default: 128) x
/// tensor-parallel size.
/// Source: Megatron megatron/tokenizer, `_vocab_size_with_padding`, --make-vocab-size-divisible-by.
std::int64_t padded_vocabulary(std::int64_t vocab, int tensor, std::int64_t multiple = 128);

}  // namespace tessera
