# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sessions of the extension module: tensors and how long they live, errors, threads, interrupts, forks."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref
from concurrent.futures import ThreadPoolExecutor

import models
import numpy as np
from resources import check_growth
from tp_mlir import Error, ExecutionError, InputError, _native
from tp_mlir._native import Program, Session

FOLDER = models.Folder()
unittest.addModuleCleanup(FOLDER.cleanup)
MADE = {}


def get_artifact(name, make):
    """The artifact of a program, which is compiled once."""
    if name not in MADE:
        MADE[name] = models.make_artifact(FOLDER, make(), f"{name}.tpx")
    return MADE[name]


def get_mlp():
    return get_artifact("mlp", models.parallelize_mlp)


def get_counter():
    return get_artifact("counter", lambda: Program.parse(models.COUNTER).parallelize())


def get_slow():
    """An artifact whose runs take a second or so."""
    return get_artifact("slow", lambda: Program.parse(models.make_slow(12)).parallelize())


class Tensors(unittest.TestCase):
    def setUp(self):
        self.weights = models.make_weights()
        self.session = Session(get_mlp(), self.weights)
        self.x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)

    def test_a_run_computes_the_model(self):
        outputs = self.session.run({"x": self.x})
        self.assertEqual(list(outputs), ["y"])
        array = outputs["y"]
        self.assertEqual((array.shape, array.dtype, array.nbytes), ((4, 8), "f32", 128))
        self.assertEqual(repr(array), "<Array 4x8xf32>")
        np.testing.assert_allclose(np.from_dlpack(array), models.compute_mlp(self.weights, self.x), rtol=1e-5, atol=1e-5)
        (flat,) = self.session.run_flat([self.x])
        np.testing.assert_array_equal(np.from_dlpack(flat), np.from_dlpack(array))
        info = self.session.last_run
        self.assertEqual((info.program, len(info.counts)), ("main", 2))
        # An all_reduce of two ranks: each receives half of the operand twice.
        self.assertEqual([(each.calls, each.bytes) for rank in info.counts for each in rank], [(1, 128)] * 2)
        self.assertGreater(info.seconds, 0)

    def test_a_run_keeps_the_outputs_of_others(self):
        first = np.from_dlpack(self.session.run_flat([self.x])[0])
        before = first.copy()
        second = np.from_dlpack(self.session.run_flat([2 * self.x])[0])
        self.assertFalse(np.shares_memory(first, second))
        np.testing.assert_array_equal(first, before)
        np.testing.assert_allclose(second, 2 * before, rtol=1e-4, atol=1e-5)

    def test_outputs_outlive_the_session(self):
        (output,) = self.session.run_flat([self.x])
        expected = np.from_dlpack(output).copy()
        array = np.from_dlpack(output)
        self.session = None
        del output
        gc.collect()
        np.testing.assert_array_equal(array, expected)

    def test_views_share_memory(self):
        (output,) = self.session.run_flat([self.x])
        self.assertTrue(np.shares_memory(np.from_dlpack(output), np.from_dlpack(output)))
        self.assertEqual(output.__dlpack_device__(), (1, 0))

    def test_own_arrays_are_inputs(self):
        (output,) = self.session.run_flat([self.x])
        (again,) = self.session.run_flat([output])
        expected = models.compute_mlp(self.weights, np.from_dlpack(output))
        np.testing.assert_allclose(np.from_dlpack(again), expected, rtol=1e-4, atol=1e-4)

    def test_inputs_of_any_strides(self):
        for x in (np.asfortranarray(self.x), np.repeat(self.x, 2, axis=1)[:, ::2], self.x[::-1], self.x.T.copy().T,
                  memoryview(self.x)):
            with self.subTest(strides=getattr(x, "strides", None)):
                found = np.from_dlpack(self.session.run_flat([x])[0])
                np.testing.assert_allclose(found, models.compute_mlp(self.weights, np.asarray(x)), rtol=1e-5, atol=1e-5)

    def test_read_only_inputs(self):
        x = self.x.copy()
        x.flags.writeable = False
        np.testing.assert_array_equal(np.from_dlpack(self.session.run_flat([x])[0]),
                                      np.from_dlpack(self.session.run_flat([self.x])[0]))

    def test_weights_live_as_long_as_the_session(self):
        class Tensor(np.ndarray):
            pass  # of which there are weak references

        # Aligned to a cache line, so that both ranks' rows are used in place.
        memory = np.zeros(16 * 8 + 16, np.float32)
        start = -memory.ctypes.data // 4 % 16
        up = memory[start:start + 128].reshape(16, 8).view(Tensor)
        up[:] = self.weights["up.weight"]
        watched = weakref.ref(up)
        session = Session(get_mlp(), {**self.weights, "up.weight": up})
        self.assertEqual((session.weight_bytes, session.copied_weight_bytes), ([512, 512], 0))
        del up
        gc.collect()
        self.assertIsNotNone(watched())
        np.testing.assert_array_equal(np.from_dlpack(session.run_flat([self.x])[0]),
                                      np.from_dlpack(self.session.run_flat([self.x])[0]))
        del session
        gc.collect()
        self.assertIsNone(watched())

    def test_inputs_are_released(self):
        class Tensor(np.ndarray):
            pass

        x = self.x.view(Tensor)
        watched = weakref.ref(x)
        self.session.run_flat([x])
        self.session.run_flat([self.x])
        del x
        gc.collect()
        self.assertIsNone(watched())

    def test_parameters(self):
        np.testing.assert_array_equal(np.from_dlpack(self.session.get_parameter("up.weight")), self.weights["up.weight"])
        self.session.run_flat([self.x])
        self.session.set_parameters({"up.weight": -self.weights["up.weight"]})
        expected = models.compute_mlp({**self.weights, "up.weight": -self.weights["up.weight"]}, self.x)
        np.testing.assert_allclose(np.from_dlpack(self.session.run_flat([self.x])[0]), expected, rtol=1e-5, atol=1e-5)
        with self.assertRaisesRegex(InputError, "no parameter 'up.wight' .did you mean 'up.weight'"):
            self.session.get_parameter("up.wight")
        with self.assertRaisesRegex(InputError, "down.weight"):
            self.session.set_parameters({"up.weight": self.weights["up.weight"], "down.weight": np.zeros(3, np.float32)})
        # None was set.
        np.testing.assert_array_equal(np.from_dlpack(self.session.get_parameter("up.weight")), -self.weights["up.weight"])

    def test_blocks_need_a_process_for_each_rank(self):
        block = np.zeros((8, 8), np.float32)
        text = "there is a block of 'up.weight', and this process runs 2 ranks; blocks are for a process that runs one"
        with self.assertRaisesRegex(InputError, text):
            Session(get_mlp(), self.weights, blocks={"up.weight": block})
        with self.assertRaisesRegex(InputError, text):
            self.session.set_parameters({}, {"up.weight": block})
        with self.assertRaisesRegex(InputError, "this process runs 2 ranks; a block of 'up.weight' needs a process that runs one"):
            self.session.get_block("up.weight")
        with self.assertRaisesRegex(InputError, "only the rank of a process that runs one rank returns blocks"):
            self.session.run_flat([self.x], blocks=[0])
        with self.assertRaisesRegex(InputError, "has no output 1"):
            self.session.run_flat([self.x], blocks=[1])

    def test_state(self):
        session = Session(get_counter())
        ones = np.ones(4, np.float32)
        for run in range(1, 4):
            np.testing.assert_array_equal(np.from_dlpack(session.run_flat([ones])[0]), run * ones)
        held = np.from_dlpack(session.get_parameter("total"))
        session.reset_state()
        np.testing.assert_array_equal(np.from_dlpack(session.run_flat([ones])[0]), ones)
        np.testing.assert_array_equal(held, 3 * ones)
        session.set_parameters({"total": 5 * ones})
        np.testing.assert_array_equal(np.from_dlpack(session.run_flat([ones])[0]), 6 * ones)


class Types(unittest.TestCase):
    def test_each_type_passes_unchanged(self):
        types = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
                 "i8": np.int8, "ui8": np.uint8, "i1": np.bool_}
        text = "tp.mesh @mesh(tp = 2)\nfunc.func @main({}) -> ({}) {{\n{}\n  return {} : {}\n}}"
        tensors = ", ".join(f"tensor<3x2x{name}>" for name in types)
        flips = "\n".join(f"  %t{name} = nn.transpose %{name} [1, 0] : tensor<2x3x{name}> -> tensor<3x2x{name}>" for name in types)
        program = Program.parse(text.format(", ".join(f"%{name}: tensor<2x3x{name}>" for name in types), tensors, flips,
                                            ", ".join(f"%t{name}" for name in types), tensors))
        session = Session(models.make_artifact(FOLDER, program.parallelize(), "types.tpx"))
        random = np.random.default_rng(2)
        inputs = [random.integers(0, 2 if type is np.bool_ else 100, (2, 3)).astype(type) for type in types.values()]
        outputs = session.run_flat(inputs)
        for given, name, output in zip(inputs, types, outputs, strict=True):
            with self.subTest(type=name):
                self.assertEqual(output.dtype, name)
                found = np.from_dlpack(output)
                self.assertEqual(found.dtype, given.dtype)
                np.testing.assert_array_equal(found, given.T)

    def test_floats_of_weights_are_converted(self):
        weights = models.make_weights(np.float64)
        x = np.ones((4, 8), np.float32)
        found = np.from_dlpack(Session(get_mlp(), weights).run_flat([x])[0])
        np.testing.assert_allclose(found, models.compute_mlp(weights, x), rtol=1e-5, atol=1e-5)


class WrongArguments(unittest.TestCase):
    def setUp(self):
        self.session = Session(get_mlp(), models.make_weights())
        self.x = np.ones((4, 8), np.float32)

    def check(self, text, call, *arguments, type=InputError, **keywords):
        with self.subTest(text):
            with self.assertRaisesRegex(type, text):
                call(*arguments, **keywords)
            # The session can be used after every error.
            self.session.run({"x": self.x})

    def test_inputs(self):
        run, flat = self.session.run, self.session.run_flat
        self.check("'x'", run, {})
        self.check("'y'", run, {"x": self.x, "y": self.x})
        self.check("4x8xf32", run, {"x": np.ones((4, 9), np.float32)})
        self.check("f64", run, {"x": self.x.astype(np.float64)})
        self.check("'x' is of type 'list'; give a tensor", run, {"x": [1, 2]})
        self.check("'x' is of type 'NoneType'", flat, [None])
        self.check(r"'x' has an element type \(DLPack code 5, 64 bits\)", run, {"x": self.x.astype(np.complex64)})
        self.check("'x'", run, {"x": np.array(["text"])})
        self.check("inputs must be a mapping of names to tensors, not of type 'list'", run, [self.x])
        self.check("inputs must have names, found a key of type 'int'", run, {1: self.x})
        self.check("no program 'mian'.*did you mean 'main'", flat, [self.x], "mian")
        self.check("'mian'", run, {"x": self.x}, program="mian")
        self.check("the program 'main' has 1 inputs, found 2", flat, [self.x, self.x])
        self.check("incompatible function arguments", flat, 7, type=TypeError)

    def test_weights(self):
        weights = models.make_weights()
        self.check("up.weight", Session, get_mlp(), {"down.weight": weights["down.weight"]})
        self.check("16x8xf32", Session, get_mlp(), {**weights, "up.weight": np.zeros((8, 16), np.float32)})
        self.check("'up.weight' is of type 'int'", Session, get_mlp(), {**weights, "up.weight": 3})

    def test_options(self):
        for options, text in (
            ({"timeuot": 1}, "no option 'timeuot' .did you mean 'timeout'"),
            ({"timeout": "long"}, "'timeout' must be a number of seconds, found 'long'"),
            ({"timeout": -1}, "'timeout' must be 0 to 1e9 seconds, found -1"),
            ({"timeout": float("nan")}, "'timeout' must be 0 to 1e9 seconds, found nan"),
            ({"pin_ranks": 1}, "'pin_ranks' must be True or False, found 1"),
            ({"max_packed_weight_bytes": True}, "'max_packed_weight_bytes' must be an integer, found True"),
            ({"max_packed_weight_bytes": -1}, "at least 0, found -1"),
            ({"gemm_library": "blas"}, "must be 'tiles', 'openblas' or 'onednn', found 'blas'"),
            ({"backend": "lokal"}, "no backend 'lokal' .did you mean 'local'"),
            ({"backend": "nccl"}, "one process per rank"),
        ):
            self.check(text, Session, get_mlp(), models.make_weights(), options)
        options = {"backend": "local", "timeout": 5.5, "pin_ranks": False, "max_packed_weight_bytes": 0, "gemm_library": "tiles",
                   "gemm_file": FOLDER / "gemm.json", "gemm_seconds": 0}
        session = Session(get_mlp(), models.make_weights(), options)
        np.testing.assert_allclose(np.from_dlpack(session.run_flat([self.x])[0]),
                                   np.from_dlpack(self.session.run_flat([self.x])[0]), rtol=1e-5)
        self.assertEqual(session.packed_weight_bytes, 0)

    def test_several_programs(self):
        programs = [(f"rows{rows}", models.parallelize_mlp(rows=rows)) for rows in (2, 4)]
        _native.compile_programs(programs, FOLDER / "several.tpx", opt_level=1)
        artifact = _native.Artifact(FOLDER / "several.tpx")
        session = Session(artifact, models.make_weights())
        self.assertEqual(json.loads(session.manifest), json.loads(artifact.manifest))
        for rows in (2, 4):
            (output,) = session.run({"x": self.x[:rows]}).values()
            self.assertEqual((output.shape, session.last_run.program), ((rows, 8), f"rows{rows}"))
        self.check("the artifact has several programs; name one: 'rows2', 'rows4'", session.run_flat, [self.x])
        self.assertEqual(session.run_flat([self.x], "rows4")[0].shape, (4, 8))

    def test_a_damaged_artifact(self):
        damaged = bytearray(get_mlp().read_bytes())
        damaged[len(damaged) // 2] ^= 1
        (FOLDER / "damaged.tpx").write_bytes(damaged)
        self.check("damaged.tpx", Session, FOLDER / "damaged.tpx", models.make_weights())


class Threads(unittest.TestCase):
    def test_runs_of_one_session_take_turns(self):
        weights = models.make_weights()
        session = Session(get_mlp(), weights)

        def work(number):
            x = np.full((4, 8), number + 1, np.float32)
            expected = models.compute_mlp(weights, x)
            for _ in range(100):
                np.testing.assert_allclose(np.from_dlpack(session.run_flat([x])[0]), expected, rtol=1e-4, atol=1e-4)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

    def test_other_threads_go_on_during_a_run(self):
        session = Session(get_slow())
        x = np.zeros((1024, 1024), np.float32)
        session.run_flat([x])
        counts, isDone = [], threading.Event()

        def count():
            while not isDone.is_set():
                counts.append(None)
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        before = len(counts)
        session.run_flat([x])
        during = len(counts) - before
        isDone.set()
        thread.join()
        # With the GIL held, the thread would count once or twice.
        self.assertGreater(during, 0.1 * session.last_run.seconds / 0.001)

    def test_a_fork_gets_an_error(self):
        session = Session(get_mlp(), models.make_weights())
        x = np.ones((4, 8), np.float32)
        session.run_flat([x])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.run_flat([x])
            except ExecutionError as error:
                code = 0 if "this session was made by process" in str(error) else 2
            del session
            gc.collect()
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        session.run_flat([x])


class Interrupts(unittest.TestCase):
    def setUp(self):
        # A shell's background jobs ignore this signal, and Python leaves it so.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def interrupt(self, seconds):
        """Sends this process the signal of Ctrl-C after some time."""
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        self.addCleanup(timer.join)

    def test_of_a_run(self):
        session = Session(get_slow())
        x = np.full((1024, 1024), 1e-3, np.float32)
        (expected,) = session.run_flat([x])
        self.interrupt(session.last_run.seconds / 4)
        with self.assertRaises(KeyboardInterrupt):
            session.run_flat([x])
            for _ in range(1000):  # the signal comes within the run, or soon after it
                time.sleep(0.01)
        (again,) = session.run_flat([x])
        np.testing.assert_array_equal(np.from_dlpack(again), np.from_dlpack(expected))

    def test_of_a_compilation(self):
        program = Program.parse(models.make_slow(40)).parallelize()
        handler = signal.getsignal(signal.SIGINT)
        for seconds in (0.005, 0.02, 0.05, 0.1, 0.2):
            self.interrupt(seconds)
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    program.compile(FOLDER / "interrupted.tpx", opt_level=1)
        self.assertEqual(signal.getsignal(signal.SIGINT), handler)
        program.compile(FOLDER / "interrupted.tpx", opt_level=1)


class Processes(unittest.TestCase):
    def run_python(self, code):
        code = f"import models, numpy as np\nfrom tp_mlir._native import *\n{code}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)

    def test_objects_may_live_until_the_end(self):
        run = self.run_python(
            f"session = Session({str(get_mlp())!r}, models.make_weights())\n"
            "output = np.from_dlpack(session.run_flat([np.ones((4, 8), np.float32)])[0])\n"
            "program = models.parallelize_mlp()\n"
            "weights = program.weights\n"
            "import sys; sys.cycle = [session, output, program]; sys.cycle.append(sys.cycle)\n"
            "print('end')")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "end\n", ""))

    def test_an_error_that_nobody_handles(self):
        run = self.run_python(f"Session({str(get_mlp())!r}).run({{}})")
        self.assertEqual(run.returncode, 1)
        self.assertIn("tp_mlir._native.InputError: missing weight", run.stderr)
        self.assertNotIn("leak", run.stderr)


class Memory(unittest.TestCase):
    def test_runs_and_sessions_leave_nothing(self):
        weights = models.make_weights()
        x = np.ones((4, 8), np.float32)

        def work():
            for _ in range(20):
                session = Session(get_mlp(), weights)
                for _ in range(20):
                    session.run_flat([x])
                try:
                    session.run({})
                except InputError:
                    pass

        check_growth(self, work, 4 << 20)
        self.assertEqual(sys.getrefcount(weights["up.weight"]), 2)


class Classes(unittest.TestCase):
    def test_errors_are_related(self):
        self.assertTrue(issubclass(InputError, Error) and issubclass(InputError, ValueError))
        self.assertTrue(issubclass(ExecutionError, Error) and not issubclass(ExecutionError, ValueError))


if __name__ == "__main__":
    unittest.main()
