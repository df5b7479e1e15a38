"""Members, enumerators and words that tools/schema_values writes from a small schema."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = """
syntax = "proto2";
package tessera.schema;
import "configs/schema/options.proto";
message Wheel {
  option (section) = {mirrors: "WheelSpec", doc: "A wheel."};
  enum Kind {
    option (words) = {mirrors: "WheelKind"};
    steel_wheel = 1 [(value) = {member: "steel", doc: "heavy"}];
    wood = 0;
  }
  enum Finish {
    option (words) = {mirrors: "Paint", by_hand: true};
    red = 3;
  }
  optional Kind kind = 1 [default = steel_wheel];
  optional double radius = 2 [default = 0.5, (rules) = {doc: "to the rim"}];
  optional int64 weight = 3 [default = 7, (rules) = {dimension: bytes}];
  optional Finish finish = 4;
  repeated int32 spokes = 5;
  optional string maker = 6 [(rules) = {member: "made_by", initial: "kNobody"}];
  optional string read_elsewhere = 7 [(rules) = {by_hand: true}];
  optional int32 gears = 8 [default = 3, (rules) = {mirrored_by: "GearSpec"}];
}
message Cart {
  option (section) = {mirrors: "CartSpec", doc: "A cart."};
  repeated Wheel wheels = 1;
  optional double first = 2 [(rules) = {member: "pair[0]"}];
}
"""


class SchemaValues(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "configs/schema").mkdir(parents=True)
        shutil.copy(ROOT / "configs/schema/options.proto", self.root / "configs/schema")

    def write(self, schema):
        (self.root / "small.proto").write_text(schema)
        return subprocess.run([ROOT / "tools/schema_values", "protoc", self.root, self.root / "out", "a.h,b.h", "small.proto"],
                              cwd=self.root, capture_output=True, text=True)

    def lines(self, name):
        return (self.root / "out" / name).read_text().splitlines()[1:]

    def test_members_have_type_default_and_doc_of_the_schema(self):
        self.assertEqual(self.write(SCHEMA).returncode, 0)
        self.assertEqual(self.lines("fields/wheel_spec.inc"),
                         ["WheelKind kind = WheelKind::steel;", "double radius = 0.5;  ///< to the rim", "Bytes weight = Bytes(7);",
                          "Paint finish = Paint::red;", "std::vector<int> spokes;", "std::string made_by = kNobody;"])
        self.assertEqual(self.lines("fields/gear_spec.inc"), ["int gears = 3;"])
        self.assertEqual(self.lines("fields/cart_spec.inc"), ["std::vector<WheelSpec> wheels;"])

    def test_enumerators_and_words_stand_in_the_order_of_their_numbers(self):
        self.write(SCHEMA)
        self.assertEqual(self.lines("words/wheel_kind.inc"), ["wood = 0,", "steel = 1,  ///< heavy"])
        self.assertEqual(self.lines("words/wheel_kind_names.inc"), ['"wood",', '"steel_wheel",'])
        self.assertFalse((self.root / "out/words/paint.inc").exists())

    def test_the_mirror_visits_fields_by_name_and_checks_what_is_written_by_hand(self):
        self.write(SCHEMA)
        mirror = (self.root / "out/mirror.h").read_text()
        for line in ('#include "b.h"', '  visit("maker", value.made_by);', '  visit("first", value.pair[0]);',
                     "void mirror(Of<GearSpec> auto& value, auto&& visit) {", "static_assert(int(Paint::red) == 3);"):
            self.assertIn(line + "\n", mirror)
        self.assertNotIn("read_elsewhere", mirror)

    def test_numbers_that_are_no_places_are_refused(self):
        refused = self.write(SCHEMA.replace("steel_wheel = 1", "steel_wheel = 2"))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("numbers of WheelKind have to be 0, 1, 2", refused.stderr)

    def test_a_file_that_would_not_change_is_left_alone(self):
        self.write(SCHEMA)
        before = {path: path.stat().st_mtime_ns for path in (self.root / "out").rglob("*.inc")}
        self.write(SCHEMA.replace("gears = 8 [default = 3", "gears = 8 [default = 4"))
        changed = [path.name for path, time in before.items() if path.stat().st_mtime_ns != time]
        self.assertEqual(changed, ["gear_spec.inc"])


if __name__ == "__main__":
    unittest.main()
