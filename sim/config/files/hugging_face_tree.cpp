#include "sim/config/files/hugging_face_tree.h"

#include <memory>

#include "sim/config/fields/convert.h"
#include "sim/config/files/text_file.h"
#include "sim/config/files/yaml_text.h"

namespace tessera {

HuggingFaceTree read_hugging_face_tree(const std::filesystem::path& file, bool lenient) {
  const std::string shown = shown_path(file);
  HuggingFaceTree read{.tree = {},
                       .said = read_hugging_face_config(read_text_file(file), shown, lenient)};
  const auto origin = std::make_shared<Origin>(Origin{shown, file.parent_path(), false});
  read.tree = to_tree(to_message(read.said.model), Mark{origin});
  return read;
}

}  // namespace tessera
