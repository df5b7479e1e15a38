"""A release works where no checkout is: the .deb in a bare Debian 12, the archive in a root without anything.

Takes the files of dist/ (tools/release makes them) or of the folder in TESSERA_DIST. Needs root, debootstrap and the
network. TESSERA_INSTALL_BASE keeps the bare system for the next time; TESSERA_INSTALL_ROOTS names root file systems of
other distributions, separated by colons, in which the archive runs too. The image is built where podman is installed.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = Path(os.environ.get("TESSERA_DIST", ROOT / "dist"))
NOBODY = 65534
MOST_SECONDS = 15  # from a bare machine to the answer

# From another folder than any file of Tessera lies in; each with what its answer has to hold.
COMMANDS = [
    (["--version"], "0."),
    (["simulate", "gpt2-large_4xh100_dp4"], "step time"),
    (["simulate", "mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16"], "step time"),  # on SimGrid
    (["list", "models"], "gpt2-large"),
    (["explain", "parallelism.tensor"], "whole number"),
    (["collective", "--cluster", "dgx-h100", "--op", "all_reduce", "--bytes", "1GiB"], "all_reduce"),
    (["plan", "parallelism", "gpt2-large", "dgx-h100", "--gpus", "4", "--global-batch", "32",
      "--sequence-length", "1024"], "tensor"),
    (["reproduce", "neusight"], "error")]
PYTHON = "import tessera; step = tessera.simulate('gpt2-large_4xh100_dp4'); print(step.step_time_s)"


def only(pattern):
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise unittest.SkipTest(f"{DIST} has {len(found)} files {pattern}: run tools/release into an empty dist")
    return found[0]


def inside(root, command, user=0, folder="/elsewhere", **options):
    """`command` with `root` as its root file system."""
    def enter():
        os.chroot(root)
        os.chdir(folder)
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    (root / folder.strip("/")).mkdir(exist_ok=True)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "DEBIAN_FRONTEND": "noninteractive",
                   **{name: os.environ[name] for name in ("http_proxy", "https_proxy") if name in os.environ}}
    return subprocess.run(command, preexec_fn=enter, env={**environment, **options.pop("env", {})}, cwd="/",
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)


def debian_mirror():
    """The one that this machine uses; Debian's own where it tells of none."""
    lists = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False)
    return next((uri for uri in lists.stdout.split() if uri.rstrip("/").endswith("/debian")), None)


def make_base(folder):
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", folder]
    mirror = debian_mirror()
    subprocess.run(command + ([mirror] if mirror else []), check=True, stdout=subprocess.DEVNULL)


def copy_network_settings(root):
    shutil.copytree("/etc/apt/apt.conf.d", root / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    for name in ("etc/apt/apt.conf", "etc/resolv.conf", "etc/hosts"):
        if (Path("/") / name).is_file():
            shutil.copyfile(Path("/") / name, root / name)


@unittest.skipUnless(os.geteuid() == 0, "needs root: it makes root file systems")
class Installed(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.scratch.chmod(0o755)

    def runs(self, root, command, **options):
        result = inside(root, [str(word) for word in command], **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        return result.stdout

    def answers(self, root, program, before=()):
        for words, expected in COMMANDS:
            with self.subTest(command=words):
                self.assertIn(expected, self.runs(root, [*before, program, *words], user=NOBODY))

    def bare_debian(self):
        if not shutil.which("debootstrap"):
            self.skipTest("needs debootstrap")
        base = Path(os.environ.get("TESSERA_INSTALL_BASE", self.scratch / "base"))
        if not (base / "etc").is_dir():
            make_base(base)
        subprocess.run(["cp", "-a", base, self.scratch / "debian"], check=True)
        copy_network_settings(self.scratch / "debian")
        return self.scratch / "debian"

    def test_deb_in_a_bare_debian(self):
        root, package = self.bare_debian(), only("tessera_*_amd64.deb")
        shutil.copyfile(package, root / package.name)
        start = time.monotonic()
        install = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "install", "--no-install-recommends", "-y", f"/{package.name}"]
        for command in (["apt-get", "-qq", "update"], install):
            self.assertEqual(inside(root, command).returncode, 0, command)
        self.assertIn("step time", self.runs(root, ["tessera", "simulate", "gpt2-large_4xh100_dp4"], user=NOBODY))
        seconds = time.monotonic() - start
        print(f"bare Debian 12 to the first answer with the .deb: {seconds:.1f} s")
        self.answers(root, "tessera")
        self.assertEqual(inside(root, [*install[:-1], "python3"]).returncode, 0)
        self.assertGreater(float(self.runs(root, ["python3", "-c", PYTHON], user=NOBODY)), 0.1)
        self.assertTrue((root / "usr/share/man/man1/tessera.1").is_file())
        self.assertTrue((root / "usr/share/bash-completion/completions/tessera").is_file())
        self.assertEqual(inside(root, ["dpkg", "--remove", "tessera"]).returncode, 0)
        self.assertFalse([left for left in (root / "usr").rglob("*tessera*")])
        self.assertLessEqual(seconds, MOST_SECONDS)

    def unpacked(self, root):
        root.mkdir(exist_ok=True)
        archive = only("tessera-*-linux-x86_64.tar.zst")
        subprocess.run(["tar", "--zstd", "-xf", archive, "-C", root], check=True)
        return "/" + archive.name.removesuffix(".tar.zst")

    def test_archive_in_an_empty_root(self):
        root = self.scratch / "empty"
        folder = self.unpacked(root)
        self.assertEqual(sorted(path.name for path in root.iterdir()), [folder.strip("/")])
        self.answers(root, folder + "/bin/tessera")

    def test_archive_moves_and_is_found_through_a_link(self):
        root = self.scratch / "moved"
        folder = self.unpacked(root)
        (root / "opt").mkdir()
        (root / folder.strip("/")).rename(root / "opt/tessera")
        (root / "bin").mkdir()
        (root / "bin/tessera").symlink_to("../opt/tessera/bin/tessera")
        self.answers(root, "/bin/tessera")

    def test_archive_in_other_distributions(self):
        roots = [Path(name) for name in os.environ.get("TESSERA_INSTALL_ROOTS", "").split(":") if name]
        for source in roots:
            with self.subTest(root=source.name):
                root = self.scratch / source.name
                subprocess.run(["cp", "-a", source, root], check=True)
                self.answers(root, self.unpacked(root) + "/bin/tessera")

    def test_python_package_of_the_archive(self):
        root = self.bare_debian()
        folder = self.unpacked(root)
        for command in (["apt-get", "-qq", "update"], ["apt-get", "-qq", "install", "--no-install-recommends", "-y", "python3"]):
            self.assertEqual(inside(root, command).returncode, 0, command)
        environment = {"PYTHONPATH": folder + "/lib/python3/dist-packages"}
        self.assertGreater(float(self.runs(root, ["python3", "-c", PYTHON], user=NOBODY, env=environment)), 0.1)

    @unittest.skipUnless(shutil.which("podman"), "needs podman")
    def test_image_answers_and_writes_a_report(self):
        image, base, work = "localhost/tessera-release-test", "localhost/tessera-release-test-base", self.scratch / "work"
        self.addCleanup(subprocess.run, ["podman", "rmi", "--force", image, base], capture_output=True, check=False)
        debian = self.bare_debian()
        subprocess.run(f"tar -C '{debian}' -c . | podman import - {base}", shell=True, check=True, capture_output=True)
        (self.scratch / "context").mkdir()
        shutil.copyfile(ROOT / "Containerfile", self.scratch / "context/Containerfile")
        shutil.copytree(DIST, self.scratch / "context/dist")
        subprocess.run(["podman", "build", "--isolation", "chroot", "--network", "host", "--build-arg", f"BASE={base}", "-t", image,
                        self.scratch / "context"], check=True, capture_output=True)
        work.mkdir(mode=0o755)
        result = subprocess.run(["podman", "run", "--rm", "--network", "none", "-v", f"{work}:/work", image, "simulate",
                                 "gpt2-large_4xh100_dp4", "--report", "step.html"], capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("step time", result.stdout)
        self.assertIn("<html", (work / "step.html").read_text())


class Papers(unittest.TestCase):
    def test_checksums_hold(self):
        only("SHA256SUMS")
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=DIST, check=True)

    def test_every_carried_library_has_a_licence_and_a_line_in_the_sbom(self):
        archive = only("tessera-*-linux-x86_64.tar.zst")
        names = subprocess.run(["tar", "--zstd", "-tf", archive], check=True, capture_output=True, text=True).stdout.split()
        licences = {Path(name).stem for name in names if "/licences/" in name and name.endswith(".txt")}
        packages = {entry["name"]: entry for entry in json.loads(only("*.spdx.json").read_text())["packages"]}
        self.assertIn("libsimgrid3.32", licences)
        self.assertIn("echarts", packages)
        self.assertLessEqual(licences, set(packages))
        self.assertFalse([name for name in names if "libgsl" in name])


if __name__ == "__main__":
    unittest.main()
