#include "sim/formats/input_file.h"

#include <algorithm>
#include <boost/iostreams/concepts.hpp>
#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <boost/iostreams/read.hpp>
#include <fstream>
#include <iterator>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/read_file.h"

namespace tessera {
namespace {

bool is_gzip(std::ifstream& file) {
  const int first = file.get();
  const int second = file.get();
  file.clear();
  file.seekg(0);
  return first == 0x1f && second == 0x8b;
}

/// Counts what passes.
class ByteCounter : public boost::iostreams::multichar_input_filter {
 public:
  std::int64_t bytes() const { return *bytes_; }

  template <class Source>
  std::streamsize read(Source& source, char* text, std::streamsize size) {
    const std::streamsize count = boost::iostreams::read(source, text, size);
    *bytes_ += std::max<std::streamsize>(count, 0);
    return count;
  }

 private:
  std::shared_ptr<std::int64_t> bytes_ = std::make_shared<std::int64_t>(0);  // of all copies
};

/// Lets pass what a file may hold.
class SizeGuard : public boost::iostreams::multichar_input_filter {
 public:
  SizeGuard(std::string file, ByteCounter compressed)
      : file_(std::move(file)), compressed_(std::move(compressed)) {}

  template <class Source>
  std::streamsize read(Source& source, char* text, std::streamsize size) {
    const std::streamsize count = boost::iostreams::read(source, text, size);
    bytes_ += std::max<std::streamsize>(count, 0);
    if (bytes_ > kMaxInputBytes)
      throw InputError({file_, "is larger than " + size_limit_text(kMaxInputBytes),
                        "give the trace of fewer steps"});
    if (bytes_ > kFreeInputBytes && bytes_ / kMaxCompression > compressed_.bytes())
      throw InputError(
          {file_,
           "decompresses to more than " + std::to_string(kMaxCompression) + " times its size",
           "decompress it and check that it is the right file"});
    return count;
  }

 private:
  std::string file_;
  ByteCounter compressed_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<std::istream> open_input_file(const std::filesystem::path& path) {
  namespace io = boost::iostreams;
  check_is_file(path, "give the path of a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError({path.string(), "cannot be read", "check its permissions"});
  auto stream = std::make_unique<io::filtering_istream>();
  const ByteCounter counter;
  stream->push(SizeGuard(path.string(), counter));
  if (is_gzip(file)) stream->push(io::gzip_decompressor());
  stream->push(counter);
  stream->push(io::file_source(path.string(), std::ios::binary));
  return stream;
}

std::string read_input_file(const std::filesystem::path& path) {
  const auto stream = open_input_file(path);
  try {
    return {std::istreambuf_iterator<char>(*stream), {}};
  } catch (const std::ios_base::failure& error) {
    throw InputError(
        {path.string(), "cannot be read: " + std::string(error.what()), "give an undamaged file"});
  }
}

}  // namespace tessera
