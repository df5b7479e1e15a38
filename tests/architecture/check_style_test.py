"""tools/check_style accepts plain text files and finds each kind of violation."""

import unittest

from planted_tree import PlantedTree


class CheckStyle(PlantedTree):
    CHECK = "check_style"

    def setUp(self):
        super().setUp()
        self.plant("hw/gpu.h", "#pragma once\n\nint sm_count();\n")

    def test_accepts_a_guarded_header(self):
        self.assert_passes()

    def test_rejects_a_header_without_pragma_once(self):
        self.plant("hw/node.h", "int gpu_count();\n")
        self.assert_finds("hw/node.h:1: a header starts with '#pragma once'")

    def test_rejects_carriage_returns_tabs_and_trailing_spaces(self):
        self.plant("hw/gpu.cpp", b"int a;\r\nint b; \n\tint c;\n")
        self.assert_finds("hw/gpu.cpp:1: ends with a carriage return",
                          "hw/gpu.cpp:2: has white space at the end of the line", "hw/gpu.cpp:3: has a tab")

    def test_keeps_the_white_space_of_test_data(self):
        self.plant("tests/data/bad/tabs.yaml", "\tname: x\n")
        self.assert_passes()

    def test_rejects_paths_of_one_machine(self):
        home = "/" + "home/somebody/tessera"
        self.plant("docs/page.md", f"See {home}.\n")
        self.assert_finds("docs/page.md:1: names a path of one machine")

    def test_accepts_addresses_and_relative_paths_that_look_like_home(self):
        self.plant("docs/page.md", "See https://example.org/home/page and docs/home/page.\n")
        self.assert_passes()

    def test_rejects_a_link_to_a_page_that_does_not_exist(self):
        self.plant("docs/page.md", "[a](other.md#part)\n[b](../hw/gpu.h) [c](https://example.org/x) [d](#here)\n")
        self.assert_finds("docs/page.md:1: links to other.md, which does not exist")

    def test_rejects_a_last_line_without_its_end(self):
        self.plant("hw/gpu.cpp", "int a;")
        self.assert_finds("hw/gpu.cpp:1: has no newline at the end of the file")

    def test_rejects_a_loop_over_a_part_of_a_temporary(self):
        self.plant("hw/gpu.cpp", "for (const Op& op : graph(model).blocks[0].forward)\n")
        self.assert_finds("hw/gpu.cpp:1: the loop's range is a part of a temporary, which ends before the first turn; name it")

    def test_accepts_a_loop_over_a_member_of_a_temporary_or_a_part_of_what_stays(self):
        self.plant("hw/gpu.cpp", "for (const Op& op : graph(model).blocks)\nfor (const Op& op : blocks[0].forward)\n"
                   "for (const int at : sample) grid.point(at).values[1] = 3;\n")
        self.assert_passes()

    def test_rejects_a_function_or_a_member_of_more_than_forty_lines(self):
        body = "  f();\n" * 39
        self.plant("hw/gpu.cpp", "void f();\n\n" + f"int g(int a,\n      int b) {{\n{body[14:]}}}\n" + f"\nvoid h() {{\n{body}}}\n")
        self.plant("hw/node.h", "#pragma once\n\nstruct A {\n  int a() const {\n" + "    f();\n" * 39 + "  }\n};\n")
        self.assert_finds("hw/gpu.cpp:44: a function of 41 lines; functions stop at 40",
                          "hw/node.h:4: a function of 41 lines; functions stop at 40")

    def test_accepts_long_classes_and_lists(self):
        self.plant("hw/gpu.cpp", "struct A {\n" + "  int a;\n" * 60 + "};\nconst int b[] = {\n" + "    1,\n" * 60 + "};\n")
        self.assert_passes()

    def test_rejects_a_folder_of_more_than_thirty_sources(self):
        for number in range(30):
            self.plant(f"sim/{number}.cpp", "int a;\n")
            self.plant(f"configs/{number}.yaml", "a: 1\n")
        self.plant("configs/30.yaml", "a: 1\n")
        self.assert_passes()
        self.plant("sim/30.cpp", "int a;\n")
        self.assert_finds("sim: 31 files; folders stop at 30")

    def plant_target(self, first, second):
        self.plant("cmake/TesseraTargets.cmake", "set(TESSERA_NESTED_TARGETS sim/plan)\nset(TESSERA_VARIANT_FOLDERS sim/many)\n")
        for file, function in (("sim/a.cpp", first), ("sim/b.cpp", second)):
            self.plant(file, "namespace {\n\n" + function + "\n}  // namespace\n")

    def test_rejects_functions_that_take_over_calls_of_a_source_compiled_with_them(self):
        self.plant_target("int cut(std::string_view text, int size) {\n  return 1;\n}\n",
                          "int cut(const std::string& text, double size, bool all = false) {\n  return 2;\n}\n")
        self.assert_finds("sim/b.cpp:3: cut would answer calls of sim/a.cpp, which is compiled with it: rename one")

    def test_accepts_overloads_that_no_call_confuses(self):
        self.plant_target("int cut(const Job& job) {\n  return 1;\n}\n", "int cut(const Link& link) {\n  return 2;\n}\n")
        self.assert_passes()

    def test_accepts_equal_names_in_targets_of_their_own(self):
        self.plant_target("int cut(int size) {\n  return 1;\n}\n", "")
        self.plant("sim/plan/c.cpp", "namespace {\n\nint cut(double size) {\n  return 2;\n}\n\n}  // namespace\n")
        self.assert_passes()

    def test_rejects_folders_that_tests_share(self):
        shared = "testing::" + "TempDir()"
        self.plant("tests/hw/gpu_test.cpp", f"auto file = {shared} + \"a\";\n")
        self.assert_finds("tests/hw/gpu_test.cpp:1: a folder that tests share; write into a ScratchFolder "
                          "(tests/hw/units/scratch.h)")

    def test_only_warns_of_a_long_file(self):
        self.plant("hw/gpu.cpp", "\n" * 401)
        result = self.run_check()
        self.assertEqual(result.stdout, "hw/gpu.cpp:401: warning: 401 lines; files stop at 400\n")
        self.assertEqual(result.returncode, 0)

    def test_leaves_out_the_build_folder(self):
        self.plant("build/generated.h", "int x;\n")
        self.assert_passes()


if __name__ == "__main__":
    unittest.main()
