"""The log that a trainer in Python writes: rows, names, requests of the page, and what must not reach the training."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import keel
from keel import _verdict
from keel import _names
from keel._run import Run


class Scratch(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="keel-python-")
        self.addCleanup(shutil.rmtree, self.root, True)
        self.said = io.StringIO()
        quiet = contextlib.redirect_stderr(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def read(self, run, name):
        with open(os.path.join(run.directory, name)) as file:
            return [json.loads(line) for line in file] if name.endswith(".jsonl") else json.load(file)

    def ask(self, run, **request):
        inbox = os.path.join(run.directory, "inbox")
        os.makedirs(inbox, exist_ok=True)
        name = str(uuid.uuid4())
        with open(os.path.join(inbox, f"{name}.json"), "w") as file:
            file.write(request["raw"] if "raw" in request else json.dumps({"by": "page", **request}))
        run.poll(now=True)
        with open(os.path.join(inbox, f"{name}.answer")) as file:
            return json.load(file)


class Log(Scratch):
    def test_rows_are_there_at_once_in_order_and_with_numbers_only(self):
        run = Run("My Loop!", root=self.root, seed=3, config={"learningRate": 0.1, "odd": object(), "nan": float("nan")})
        run.log(10, {"episode/return": 1.5, "loss/value": float("nan"), "x": 2, "text": "no", "train/step": 99, "time/log_s": 1})
        run.log(20, {"episode/return": float("-inf"), "Odd Name": True})
        with open(os.path.join(run.directory, "metrics.jsonl")) as file:
            lines = file.read().split("\n")
        self.assertTrue(lines[0].startswith('{"train/iteration":1,"train/step":10,"episode/return":1.5,"loss/value":"NaN","own/x":2,"time/'))
        rows = self.read(run, "metrics.jsonl")
        self.assertEqual((rows[1]["train/step"], rows[1]["episode/return"], rows[1]["own/Odd_Name"]), (20, "-Infinity", 1))
        self.assertIn("time/steps_per_second", rows[1])
        self.assertEqual(self.said.getvalue(), "keel: not logged, because they are no numbers: text\n")
        self.assertRegex(os.path.basename(run.directory), r"^my-loop-\d{8}-\d{6}-seed3-[2-9a-z]{4}$")
        self.assertTrue(os.path.exists(os.path.join(run.directory, "lock.1")))
        run.close()
        manifest = self.read(run, "manifest.json")
        self.assertEqual((manifest["status"], manifest["iteration"], manifest["step"], manifest["reason"]), ("finished", 2, 20, None))
        self.assertEqual((manifest["config"]["odd"], manifest["config"]["nan"]), ("object", "nan"))
        self.assertFalse(os.path.exists(os.path.join(run.directory, "lock.1")))
        self.assertEqual([event["type"] for event in self.read(run, "events.jsonl")], ["started", "finished"])

    def test_names_of_others_become_the_registrys_and_unknown_ones_stay(self):
        sb3, trl, own = _names.namer(_names.SB3), _names.namer(_names.TRL), _names.namer(_names.CLEANRL)
        self.assertEqual(sb3("train/approx_kl"), ("kl/step_k3", 1))
        self.assertEqual(sb3("train/entropy_loss"), ("policy/entropy", -1))
        self.assertEqual(trl("kl"), ("kl/ref_k3", 1))
        self.assertEqual(own("losses/old_approx_kl"), ("kl/step_k1", 1))
        self.assertEqual(own("reward/part/fall"), ("reward/part/fall", 1))
        for theirs, kept in (("Loss", "own/Loss"), ("a b/ü", "own/a_b/_"), ("../../etc", "own/_/_/etc"), ("", "own/_"), ("custom/x", "custom/x")):
            self.assertEqual(own(theirs)[0], kept)
            self.assertTrue(_names._WELL_FORMED.match(kept))

    def test_it_says_how_the_program_ended(self):
        program = "import keel, sys\nkeel.start('p', root=sys.argv[1])\nkeel.log(1, {'x': 1})\n"
        for more, status, reason in (("", "finished", None), ("raise RuntimeError('burnt')", "failed", "RuntimeError: burnt"), ("raise KeyboardInterrupt", "stopped", "interrupted")):
            root = os.path.join(self.root, status)
            subprocess.run([sys.executable, "-c", program + more, root], cwd=os.path.dirname(os.path.dirname(__file__)), stderr=subprocess.DEVNULL)
            with open(os.path.join(root, os.listdir(root)[0], "manifest.json")) as file:
                manifest = json.load(file)
            self.assertEqual((manifest["status"], manifest["reason"]), (status, reason))

    def test_a_forked_child_neither_writes_nor_ends_it(self):
        run = Run("p", root=self.root)
        child = os.fork()
        if child == 0:
            run.log(1, {"x": 1})
            run.close()
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(self.read(run, "metrics.jsonl"), [])
        self.assertEqual(self.read(run, "manifest.json")["status"], "running")
        run.close()


class Away(Scratch):
    """Whatever befalls the directory, the training goes on, with one warning."""

    def test_a_place_that_cannot_be_written(self):
        blocked = os.path.join(self.root, "file")
        open(blocked, "w").close()
        run = Run("p", root=os.path.join(blocked, "runs"))
        for step in range(5):
            self.assertIsNone(run.log(step, {"x": 1}).stopping)
        run.close()
        self.assertEqual(self.said.getvalue().count("\n"), 1)
        self.assertIn("the training goes on", self.said.getvalue())

    def test_a_directory_that_is_deleted(self):
        run = Run("p", root=self.root)
        run.log(1, {"x": 1})
        shutil.rmtree(run.directory)
        for step in range(5):
            run.log(step, {"x": 1})
        run.close()
        self.assertEqual(self.said.getvalue().count("\n"), 1)
        self.assertFalse(os.path.exists(run.directory))

    def test_half_a_line_does_not_stay_where_the_disk_is_full(self):
        run = Run("p", root=self.root)
        run.log(1, {"x": 1})
        write, os.write = os.write, lambda file, data: write(file, data[:9])
        try:
            run.log(2, {"x": 1})
            run.log(3, {"x": 1})
        finally:
            os.write = write
        run.log(4, {"x": 1})
        self.assertEqual([row["train/step"] for row in self.read(run, "metrics.jsonl")], [1, 4])
        self.assertIn("No space left", self.said.getvalue())
        self.assertEqual(self.said.getvalue().count("\n"), 1)
        run.close()

    def test_without_keel_stop_on_says_so_once(self):
        path, os.environ["PATH"] = os.environ["PATH"], ""
        named = os.environ.pop("KEEL", None)
        try:
            run = Run("p", root=self.root, stop_on="sick", doctor_every=0)
        finally:
            os.environ["PATH"] = path
            if named is not None:
                os.environ["KEEL"] = named
        for step in range(3):
            self.assertIsNone(run.log(step, {"x": 1}).stopping)
        self.assertEqual(self.said.getvalue().count("\n"), 1)
        self.assertIn("keel command", self.said.getvalue())
        run.close()


    def test_keel_is_found_where_npm_installs_it(self):
        project = os.path.realpath(self.root)
        entry = os.path.join(project, "node_modules", "keel", "bin", "keel.js")
        node = os.path.join(project, "bin", "node")
        for path in (entry, node):
            os.makedirs(os.path.dirname(path))
            with open(path, "w") as file:
                file.write("#!/bin/sh\n")
            os.chmod(path, 0o755)
        before, path, named = os.getcwd(), os.environ["PATH"], os.environ.pop("KEEL", None)
        own = _verdict.__file__
        os.makedirs(os.path.join(project, "below"))
        try:
            os.chdir(os.path.join(project, "below"))
            os.environ["PATH"] = os.path.dirname(node)
            _verdict.__file__ = os.path.join(project, "site-packages", "keel", "_verdict.py")
            self.assertEqual(_verdict._installed(), [node, entry])
            # The package that this file lies in goes before.
            _verdict.__file__ = own
            self.assertTrue(os.path.samefile(_verdict._installed()[1], os.path.join(os.path.dirname(own), "../../bin/keel.js")))
            os.rmdir(os.getcwd())
            self.assertIsNotNone(_verdict._installed())
            os.environ["PATH"] = ""
            self.assertIsNone(_verdict._installed())
        finally:
            _verdict.__file__ = own
            os.chdir(before)
            os.environ["PATH"] = path
            if named is not None:
                os.environ["KEEL"] = named


class Asked(Scratch):
    def test_a_control_is_called_and_the_change_is_kept(self):
        got = []
        run = Run("p", root=self.root, controls={"learningRate": got.append})
        run.log(1, {"x": 1})
        answer = self.ask(run, type="set", key="learningRate", value=0.5)
        self.assertEqual((answer, got), ({"done": True, "message": "learningRate is 0.5 from iteration 2 on"}, [0.5]))
        self.assertEqual(self.read(run, "adjustments.json")["changes"], [{"iteration": 2, "key": "learningRate", "value": 0.5, "by": "page"}])
        self.assertEqual(self.read(run, "manifest.json")["controls"], ["learningRate", "paused"])
        act = self.read(run, "events.jsonl")[-1]
        self.assertEqual((act["type"], act["iteration"], act["key"], act["value"]), ("act", 2, "learningRate", 0.5))
        run.close()

    def test_what_cannot_be_done_is_refused_and_changes_nothing(self):
        def refuse(value):
            raise RuntimeError("their trainer broke")

        run = Run("p", root=self.root, controls={"learningRate": refuse})
        for request, words in (
            ({"raw": "{"}, "no JSON"),
            ({"raw": "[" * 60000}, "no JSON"),
            ({"raw": "x" * 70000}, "more than 65536 bytes"),
            ({"raw": "3"}, "by whom"),
            ({"type": "set", "key": "gamma", "value": 1}, "cannot be changed"),
            ({"type": "set", "key": "../x", "value": 1}, "cannot be understood"),
            ({"type": "set", "key": "learningRate", "value": True}, "finite number"),
            ({"type": "set", "key": "learningRate", "value": float("nan")}, "finite number"),
            ({"type": "set", "key": "learningRate", "value": 1}, "their trainer broke"),
            ({"type": "set", "key": "paused", "value": 2}, "1 or 0"),
        ):
            answer = self.ask(run, **request)
            self.assertFalse(answer["done"])
            self.assertIn(words, answer["message"])
        self.assertFalse(os.path.exists(os.path.join(run.directory, "adjustments.json")))
        run.close()

    def test_a_pipe_in_the_inbox_is_not_waited_for(self):
        run = Run("p", root=self.root)
        os.makedirs(os.path.join(run.directory, "inbox"))
        os.mkfifo(os.path.join(run.directory, "inbox", f"{uuid.uuid4()}.json"))
        began = time.monotonic()
        run.poll(now=True)
        self.assertLess(time.monotonic() - began, 5)
        run.close()

    def test_stop_and_pause(self):
        run = Run("p", root=self.root)
        self.assertTrue(self.ask(run, type="stop")["done"])
        self.assertEqual(run.poll(), "stopped by page")
        run.close()
        self.assertEqual(self.read(run, "manifest.json")["status"], "stopped")
        paused = Run("p", root=self.root)
        inbox = os.path.join(paused.directory, "inbox")
        os.makedirs(inbox)
        # The one who asks to go on is another process.
        later = (
            "import json,sys,time,os,uuid\n"
            "time.sleep(0.5)\n"
            "open(os.path.join(sys.argv[1], str(uuid.uuid4())+'.json'),'w').write(json.dumps({'type':'set','key':'paused','value':0,'by':'page'}))"
        )
        with open(os.path.join(inbox, f"{uuid.uuid4()}.json"), "w") as file:
            json.dump({"type": "set", "key": "paused", "value": 1, "by": "page"}, file)
        other = subprocess.Popen([sys.executable, "-c", later, inbox])
        paused.log(1, {"x": 1})
        other.wait()
        self.assertFalse(paused.paused)
        self.assertEqual([event["value"] for event in self.read(paused, "events.jsonl") if event["type"] == "act"], [1, 0])
        paused.close()


class Sick(Scratch):
    def test_stops_once_the_doctor_has_said_it_twice_in_a_row_and_is_never_waited_for(self):
        run = Run("p", root=self.root, stop_on="sick", doctor_every=0, doctor=[sys.executable, "-c", "import time; time.sleep(0.2); raise SystemExit(2)"])
        looks, began, slowest = 0, time.monotonic(), 0.0
        while run.stopping is None and time.monotonic() - began < 30:
            at = time.process_time()
            run.log(looks, {"x": 1})
            slowest = max(slowest, time.process_time() - at)
            looks += 1
            time.sleep(0.01)
        self.assertEqual(run.stopping, "keel doctor says that the run is sick")
        self.assertGreater(looks, 4)
        run.close()
        self.assertEqual(self.read(run, "manifest.json")["status"], "stopped")

    def test_what_is_not_sick_does_not_stop(self):
        run = Run("p", root=self.root, stop_on="sick", doctor_every=0, doctor=[sys.executable, "-c", "raise SystemExit(1)"])
        for step in range(20):
            run.log(step, {"x": 1})
            time.sleep(0.02)
        self.assertIsNone(run.stopping)
        run.close()


class Package(Scratch):
    def test_one_log_for_any_loop(self):
        run = keel.start("loop", root=self.root, names={"my_kl": "kl/step_k3"})
        self.assertIs(keel.log(5, {"my_kl": 0.01}), run)
        self.assertEqual(self.read(run, "metrics.jsonl")[0]["kl/step_k3"], 0.01)
        run.close()

    def test_wrong_options_are_errors(self):
        with self.assertRaisesRegex(ValueError, "stop_on"):
            keel.start("p", root=self.root, stop_on="ill")
        with self.assertRaisesRegex(ValueError, "framework"):
            keel.KeelCallback(framework="jax")
