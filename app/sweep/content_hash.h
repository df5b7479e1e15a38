#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "hw/units/formatted.h"

namespace tessera {

/// FNV-1a with 128 bits (Fowler, Noll and Vo; draft-eastlake-fnv): two of 10^9 scenarios get the
/// same key with a chance of 10^-21, and a row that was damaged gets another one.
class ContentHash {
 public:
  ContentHash& add(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
    add_byte(0xFF);  // an end that is in no UTF-8 text
    return *this;
  }
  ContentHash& add(std::int64_t number) { return add(std::string_view(std::to_string(number))); }
  /// Every bit of it.
  ContentHash& add(double number) { return add(std::bit_cast<std::int64_t>(number)); }

  /// 32 digits.
  std::string hexadecimal() const {
    return formatted("%016llx%016llx", static_cast<unsigned long long>(state_ >> 64),
                     static_cast<unsigned long long>(state_));
  }

 private:
  __extension__ using Wide = unsigned __int128;
  void add_byte(unsigned char byte) { state_ = (state_ ^ byte) * kPrime; }

  static constexpr Wide kPrime = (Wide{1} << 88) + 0x13B;
  Wide state_ = (Wide{0x6C62272E07BB0142} << 64) + 0x62B821756295C58D;
};

}  // namespace tessera
