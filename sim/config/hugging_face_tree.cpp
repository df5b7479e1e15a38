#include "sim/config/hugging_face_tree.h"

#include <memory>

#include "sim/config/convert.h"
#include "sim/config/text_file.h"
#include "sim/config/yaml_text.h"
#include "workloads/hugging_face.h"

namespace tessera {

YamlNode read_hugging_face_tree(const std::filesystem::path& file,
                                std::vector<std::string>* unread) {
  const std::string shown = shown_path(file);
  const ModelSpec model = read_hugging_face_config(read_text_file(file), shown, unread);
  const auto origin = std::make_shared<Origin>(Origin{shown, file.parent_path(), false});
  return to_tree(to_message(model), Mark{origin});
}

}  // namespace tessera
