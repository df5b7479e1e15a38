#include "sim/formats/wire_message.h"

namespace tessera {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLengthDelimited = 2;

std::uint64_t tag(int field, std::uint64_t type) {
  return static_cast<std::uint64_t>(field) << 3 | type;
}

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
}

}  // namespace

void WireMessage::raw_varint(std::uint64_t value) {
  append_varint(bytes_, value);
}

void WireMessage::varint(int field, std::uint64_t value) {
  raw_varint(tag(field, kVarint));
  raw_varint(value);
}

void WireMessage::fixed64(int field, std::uint64_t value) {
  raw_varint(tag(field, kFixed64));
  for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xff);
}

void WireMessage::text(int field, std::string_view value) {
  raw_varint(tag(field, kLengthDelimited));
  raw_varint(value.size());
  bytes_ += value;
}

std::string delimited(const WireMessage& message) {
  std::string bytes;
  append_varint(bytes, message.bytes().size());
  return bytes + message.bytes();
}

}  // namespace tessera
