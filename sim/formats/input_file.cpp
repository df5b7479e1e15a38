#include "sim/formats/input_file.h"

#include <boost/iostreams/device/file.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <fstream>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

bool is_gzip(std::ifstream& file) {
  const int first = file.get();
  const int second = file.get();
  file.clear();
  file.seekg(0);
  return first == 0x1f && second == 0x8b;
}

}  // namespace

std::unique_ptr<std::istream> open_input_file(const std::filesystem::path& path) {
  namespace io = boost::iostreams;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw InputError({path.string(), "cannot be read", "give the path of a file"});
  auto stream = std::make_unique<io::filtering_istream>();
  if (is_gzip(file)) stream->push(io::gzip_decompressor());
  stream->push(io::file_source(path.string(), std::ios::binary));
  return stream;
}

}  // namespace tessera
