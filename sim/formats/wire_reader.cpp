#include "sim/formats/wire_reader.h"

#include <string>

namespace tessera {

std::string_view WireReader::take(std::uint64_t size) {
  if (size > rest_.size())
    throw WireDamage("ends " + std::to_string(size - rest_.size()) + " bytes too early");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  throw WireDamage("has a number of more than 10 bytes");
}

std::uint64_t WireReader::fixed(std::size_t size) {
  std::uint64_t value = 0;
  const std::string_view bytes = take(size);
  for (std::size_t i = 0; i < size; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::string_view WireReader::delimited() {
  return take(varint());
}

WireField WireReader::field() {
  constexpr std::uint64_t kLargestNumber = (1U << 29U) - 1;
  const std::uint64_t tag = varint();
  const std::uint64_t number = tag >> 3U;
  if (number == 0 || number > kLargestNumber)
    throw WireDamage("has a field with number " + std::to_string(number));
  WireField field{.number = static_cast<int>(number)};
  switch (tag & 7U) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.value = fixed(8);
      break;
    case 2:
      field.is_bytes = true;
      field.bytes = delimited();
      break;
    case 5:
      field.value = fixed(4);
      break;
    default:
      throw WireDamage("has a field of wire type " + std::to_string(tag & 7U));
  }
  return field;
}

}  // namespace tessera
