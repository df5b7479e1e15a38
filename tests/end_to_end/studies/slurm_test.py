"""A sweep as a Slurm job array, on a controller and a node that this test starts: munge, one node, two CPUs."""

import os
import shutil
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from tessera_command import PROGRAM, EndToEnd

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
MISSING = [name for name in DAEMONS if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]

# 100 points.
SWEEP = """base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 128}}
axes:
  training.global_batch: {from: 8, to: 40, step: 8}
  training.micro_batch: [1, 2, 4, 8]
  parallelism.tensor: [1, 2, 3, 4, 6]
"""

CONFIG = """ClusterName=tessera-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={next_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
MpiDefault=none
JobRequeue=1
SlurmctldDebug=info
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@unittest.skipIf(MISSING, "no " + ", ".join(MISSING) + ": apt-get install slurm-wlm munge")
@unittest.skipIf(os.geteuid() != 0, "slurmd needs root")
class Slurm(EndToEnd):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"),
                                PATH=os.environ["PATH"] + ":/usr/sbin")
        for name in ("state", "spool"):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        port = self.free_port()
        self.plant("slurm.conf", CONFIG.format(host=socket.gethostname(), folder=self.folder, port=port, next_port=port + 1))
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                   f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                   f"--seed-file={self.folder}/munged.seed")
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start("slurmctld", "-D", "-c", "-f", self.folder / "slurm.conf", "-L", self.folder / "slurmctld.log")
        self.start("slurmd", "-D", "-f", self.folder / "slurm.conf", "-L", self.folder / "slurmd.log")
        self.wait_for(lambda: "idle" in self.slurm("sinfo", "--noheader", "--format=%T"), "an idle node")

    @staticmethod
    def free_port():
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            return first.getsockname()[1]

    def start(self, *command):
        log = open(self.folder / (str(command[0]) + ".out"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(word) for word in command], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def slurm(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False).stdout

    def wait_for(self, holds, what):
        for _ in range(300):
            if holds():
                return
            time.sleep(0.1)
        logs = "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
                         for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))
        self.fail(f"{what} did not come\n{logs}")

    @staticmethod
    def words_of(process):
        try:
            return (Path("/proc") / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return [""]

    def kill_a_task(self, shards):
        """Kills the tessera process of one running task, as the out-of-memory killer would."""
        for process in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            words = self.words_of(process)
            if words[0] != str(PROGRAM.resolve()) or not any(word.endswith(shards) for word in words):
                continue
            stat = Path("/proc", process, "stat")
            parent = stat.read_text().rsplit(")", 1)[1].split()[1] if stat.exists() else "0"
            if self.words_of(parent)[0] != words[0]:  # its forks simulate single points
                os.kill(int(process), signal.SIGKILL)
                return True
        return False

    def test_four_tasks_of_which_one_is_killed_and_one_requeued_give_the_local_result(self):
        sweep = self.plant("sweep.yaml", SWEEP)
        local = self.run_tessera("sweep", sweep, "--out", "local")
        self.assertEqual(local.returncode, 0, local.stderr)
        run = subprocess.Popen([PROGRAM, "sweep", sweep, "--out", "shared", "--slurm", "4", "--slurm-option=--partition=test"],
                               cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        killed = requeued = False
        for _ in range(3000):
            if run.poll() is not None:
                break
            if not killed:
                killed = self.kill_a_task("/4")
            elif not requeued:
                running = self.slurm("squeue", "--noheader", "--states=RUNNING", "--format=%F_%K").split()
                requeued = bool(running) and not self.slurm("scontrol", "requeue", running[-1])
            time.sleep(0.02)
        out, err = run.communicate(timeout=100)
        self.assertEqual(run.returncode, 0, err)
        self.assertTrue(killed and requeued, (killed, requeued))
        self.assertIn("100 points of 4 shards merged", out)
        self.assertEqual((self.folder / "shared/results.csv").read_bytes(), (self.folder / "local/results.csv").read_bytes())

    def test_what_sbatch_refuses_is_told(self):
        sweep = self.plant("sweep.yaml", SWEEP)
        self.assert_fails(3, "refused the job: ", "sweep", sweep, "--out", "shared", "--slurm", "2",
                          "--slurm-option=--partition=none-such", env=self.environment)
        self.assertTrue((self.folder / "shared/sweep.sbatch").exists())


class NoSlurm(EndToEnd):
    def test_without_slurm_the_error_says_what_to_do(self):
        sweep = self.plant("sweep.yaml", SWEEP)
        self.assert_fails(3, "there is no program sbatch; run it where Slurm's commands are", "sweep", sweep, "--out", "x",
                          "--slurm", "2", env=dict(os.environ, PATH="/nowhere"))


if __name__ == "__main__":
    unittest.main()
