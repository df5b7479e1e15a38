#include <utility>

#include "sim/formats/snapshot/pickle.h"
#include "sim/formats/snapshot/pickle_opcodes.h"

namespace tessera {

PickleWriter::PickleWriter() {
  constexpr int kProtocol = 4;
  put(kProto, 1);
  put(kProtocol, 1);
}

void PickleWriter::put(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::text(std::string_view value) {
  const bool is_short = value.size() < 256;
  put(is_short ? kShortBinUnicode : kBinUnicode, 1);
  put(value.size(), is_short ? 1 : 4);
  out_ += value;
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value < 256) {
    put(kBinInt1, 1);
    return put(static_cast<std::uint64_t>(value), 1);
  }
  const bool is_small = value == static_cast<std::int32_t>(value);
  put(is_small ? kBinInt : kLong1, 1);
  if (!is_small) put(sizeof value, 1);
  put(static_cast<std::uint64_t>(value), is_small ? 4 : 8);
}

void PickleWriter::boolean(bool value) {
  put(value ? kNewTrue : kNewFalse, 1);
}

void PickleWriter::begin_list() {
  put(kEmptyList, 1);
  put(kMark, 1);
}
void PickleWriter::end_list() {
  put(kAppends, 1);
}
void PickleWriter::begin_dict() {
  put(kEmptyDict, 1);
  put(kMark, 1);
}
void PickleWriter::end_dict() {
  put(kSetItems, 1);
}

std::string PickleWriter::finish() && {
  put(kStop, 1);
  return std::move(out_);
}

}  // namespace tessera
