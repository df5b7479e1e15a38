#include "sim/formats/output_file.h"

#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include "hw/units/replace_file.h"

namespace tessera {

std::string gzip(std::string_view contents) {
  namespace io = boost::iostreams;
  std::string compressed;
  io::filtering_ostream out;
  out.push(io::gzip_compressor(io::gzip_params(io::gzip::best_speed)));  // mtime 0 by default
  out.push(io::back_inserter(compressed));
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.reset();
  return compressed;
}

void write_output_file(const std::filesystem::path& path, std::string_view contents) {
  replace_file(path, path.extension() == ".gz" ? gzip(contents) : std::string(contents));
}

}  // namespace tessera
