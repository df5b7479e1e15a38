#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// A Protobuf message in its wire format, field by field in the order of the calls. For formats of
/// others of which we write a few fields: their schema is not ours to keep.
/// Source: Protocol Buffers documentation, "Encoding".
class WireMessage {
 public:
  void varint(int field, std::uint64_t value);
  void fixed64(int field, std::uint64_t value);
  void text(int field, std::string_view value);
  void message(int field, const WireMessage& value) { text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void raw_varint(std::uint64_t value);

  std::string bytes_;
};

/// `message` behind its length, as streams of messages are stored.
std::string delimited(const WireMessage& message);

}  // namespace tessera
