# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What changes between two calls of a module: a program of before must not run, and none may compute something else."""

import collections
import concurrent.futures
import copy
import os
import pathlib
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings
import weakref

import torch
import torch.nn.functional as F
from networks import MESH, MLP, make, parallelize
from torch import nn

import tp_mlir as tp

X = torch.linspace(-1, 1, 32).view(4, 8)
PLAN = {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}


def compare(found, expected, tolerance=1e-5):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


class Two(MLP):
    def forward(self, x, y):
        return super().forward(x) - 2 * y


class Constant(MLP):
    """Tensors that no state_dict has."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(8), persistent=False)
        self.shift = torch.zeros(8)
        self.shifts = [torch.zeros(8)]

    def forward(self, x):
        return super().forward(x) * self.mask + self.shift + self.shifts[0]


class Layers(MLP):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return super().forward(x)


class Batch:
    """A container that takes tensors only."""

    def __init__(self, x):
        self.x, self.dtype = x, x.dtype


class Observed(MLP):
    """Calls a function while it is exported."""

    def observe(self):
        pass

    def forward(self, x):
        if torch.compiler.is_exporting():
            self.observe()
        return super().forward(x)


class Arguments(unittest.TestCase):
    def test_a_tensor_that_is_passed_twice(self):
        module, expected = parallelize(make(Two)), make(Two)
        for pair in ((X, X), (X, X + 1)):
            found, wanted = ([tensor.clone().requires_grad_() for tensor in dict.fromkeys(pair)] for _ in range(2))
            module.zero_grad(), expected.zero_grad()
            for model, tensors in ((module, found), (expected, wanted)):
                y = model(tensors[0], tensors[-1])
                (y * y).sum().backward()
                tensors.append(y.detach())
            compare(found[-1], wanted[-1])
            for one, other in zip(found[:-1], wanted[:-1]):
                compare(one.grad, other.grad, 1e-4)
            compare(module.up.weight.grad, expected.up.weight.grad, 1e-4)
        self.assertEqual(len(module.reports), 1)

    def test_negated_tensors(self):
        z = torch.complex(X, X).conj().imag
        self.assertTrue(z.is_neg())
        with torch.no_grad():
            compare(parallelize(make(MLP))(z), make(MLP)(-X))

    def test_named_tuples(self):
        Pair = collections.namedtuple("Pair", "first second")

        class Named(MLP):
            def forward(self, x):
                y = super().forward(x)
                return Pair(y, y + 1)

        with torch.no_grad():
            found = parallelize(make(Named))(X)
            self.assertIsInstance(found, Pair)
            compare(found.second, make(MLP)(X) + 1)

    def test_classes_that_take_tensors_only(self):
        torch.utils._pytree.register_pytree_node(Batch, lambda batch: ([batch.x], None), lambda leaves, _: Batch(*leaves),
                                                 serialized_type_name="test_changes.Batch", flatten_with_keys_fn=lambda batch: (
                                                     [(torch.utils._pytree.GetAttrKey("x"), batch.x)], None))

        class Unnamed:
            pass

        torch.utils._pytree.register_pytree_node(Unnamed, lambda _: ([X], None), lambda leaves, _: Unnamed())

        class Batched(MLP):
            def forward(self, scale, batch):
                return super().forward(batch.x) * scale

        with torch.no_grad():
            module = parallelize(make(Batched))
            for found in (module(X[:, :1], Batch(X)), module(batch=Batch(X), scale=X[:, :1])):
                compare(found, make(MLP)(X) * X[:, :1])
            with self.assertRaisesRegex(tp.CaptureError, "flatten_with_keys_fn"):
                module(X[:, :1], Unnamed())
        self.assertEqual(len(module.reports), 1)

    def test_arguments_that_cannot_be_hashed(self):
        class Sets(MLP):
            def forward(self, x, names):
                return super().forward(x)

        with self.assertRaisesRegex(tp.InputError, r"can't be a part of a program: \{'a'\}"):
            parallelize(make(Sets))(X, {"a"})


class Contexts(unittest.TestCase):
    def test_autocast(self):
        module = parallelize(make(MLP))
        for _ in range(2):
            with torch.autocast("cpu"), self.assertRaisesRegex(tp.UnsupportedError, "torch.autocast has no effect"):
                module(X)
            module(X)

    def test_inference_mode(self):
        outside = parallelize(make(MLP))
        with torch.inference_mode():
            compare(outside(X), make(MLP)(X))
            module = parallelize(make(MLP))
        with self.assertRaisesRegex(tp.InputError, "'up.weight' of MLP was made under torch.inference_mode"):
            module(X)

    def test_loss_parallel_of_pytorch(self):
        from torch.distributed.tensor.parallel import loss_parallel

        from tp_mlir.contexts import is_loss_parallel
        with loss_parallel():
            self.assertTrue(is_loss_parallel())
        self.assertFalse(is_loss_parallel())


class Hooks(unittest.TestCase):
    def test_hooks_of_the_module_run_once(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        for model in (module, expected):
            model.register_forward_pre_hook(lambda _, args: (args[0] * 3,))
            model.register_forward_hook(lambda _, args, output: output + 1)
        for _ in range(2):
            found, wanted = module(X), expected(X)
            compare(found, wanted)
        found.square().sum().backward(), wanted.square().sum().backward()
        compare(module.up.weight.grad, expected.up.weight.grad, 1e-4)

    def test_hooks_inside(self):
        module = parallelize(make(MLP))
        module(X)
        handle = module.up.register_forward_hook(lambda *_: None)
        for model in (module, copy.deepcopy(module)):
            with self.assertRaisesRegex(tp.UnsupportedError, "the module 'up' in MLP has the forward hook"):
                model(X)
        handle.remove()
        compare(module(X), make(MLP)(X))


    def test_hooks_of_all_modules(self):
        module = parallelize(make(MLP))
        for register in (nn.modules.module.register_module_forward_pre_hook, nn.modules.module.register_module_forward_hook,
                         nn.modules.module.register_module_full_backward_hook):
            handle = register(lambda *_: None)
            with self.assertRaisesRegex(tp.UnsupportedError, "is a hook of all modules"):
                module(X)
            handle.remove()
            compare(module(X), make(MLP)(X))


class Modules(unittest.TestCase):
    def test_constants(self):
        module, expected = parallelize(make(Constant)), make(Constant)
        with torch.no_grad():
            for change in (lambda model: None, lambda model: model.mask.mul_(2), lambda model: model.shift.add_(1),
                           lambda model: setattr(model, "shift", torch.full((8,), 3.0)), lambda model: model.shifts[0].add_(1),
                           lambda model: model.shifts.__setitem__(0, torch.full((8,), 4.0))):
                change(module), change(expected)
                compare(module(X), expected(X))

    def test_attributes_are_read_again_when_asked(self):
        class Scaled(MLP):
            factor = 1.0

            def forward(self, x):
                return super().forward(x) * self.factor

        module = parallelize(make(Scaled))
        with torch.no_grad():
            module(X)
            module.factor = 2.0
            compare(module(X), make(MLP)(X))
            module.refresh(programs=True)
            compare(module(X), make(MLP)(X) * 2)

    def test_structure(self):
        module, expected = parallelize(make(Layers)), make(Layers)

        def append(model):
            torch.manual_seed(1)
            model.layers.append(nn.Linear(8, 8))

        with torch.no_grad():
            for change in (lambda model: None, append, lambda model: model.layers.__delitem__(1),
                           lambda model: setattr(model.layers[0], "bias", None)):
                change(module), change(expected)
                compare(module(X), expected(X))

    def test_types(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        with torch.no_grad():
            module(X)
            compare(module.double()(X.double()), expected.double()(X.double()))
            module.to(torch.bfloat16), expected.to(torch.bfloat16)
            compare(module(X.bfloat16()), expected(X.bfloat16()), 2e-2)

    def test_data_that_is_assigned_twice(self):
        module = parallelize(make(MLP))
        with torch.no_grad():
            module(X)
            pointers = set()
            for value in range(6):
                module.down.bias.data = torch.full((8,), float(value))
                module.down.weight.data = torch.zeros(8, 16)
                pointers.add(module.down.bias.data_ptr())
                compare(module(X), torch.full((4, 8), float(value)))

    def test_gradients_of_parameters_that_are_unfrozen(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        for trained in (False, True, False):
            for model in (module, expected):
                model.up.weight.requires_grad_(trained)
                model.zero_grad()
                model(X).square().sum().backward()
            self.assertEqual(module.up.weight.grad is None, expected.up.weight.grad is None)
            compare(module.down.weight.grad, expected.down.weight.grad, 1e-4)
            if trained:
                compare(module.up.weight.grad, expected.up.weight.grad, 1e-4)

    def test_members_that_are_static(self):
        class Saved(MLP):
            @staticmethod
            def save():
                return "own"

            @classmethod
            def prove(cls):
                return cls

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = parallelize(make(Saved))
        self.assertEqual(module.save(), "own")
        self.assertIs(module.prove(), type(module))

    def test_calls_that_fail_change_nothing(self):
        module = make(MLP)
        with self.assertRaises(tp.InputError):
            parallelize(module, example_inputs=X, options={"sequences": True})
        self.assertIs(type(module), MLP)
        self.assertNotIn("_tp_mlir", vars(module))
        parallelize(module, example_inputs=X)
        with self.assertRaises(tp.PlanError):
            tp.parallelize_module(module, MESH, {"up": tp.RowwiseParallel()}, example_inputs=X)
        with torch.no_grad():
            compare(module(X), make(MLP)(X))
            self.assertEqual(len(module.reports), 1)

    def test_options_of_modules_inside(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = make(MLP)
                self.last = nn.Linear(8, 8)

            def forward(self, x):
                return self.last(self.inner(x))

        module = Outer()
        parallelize(module.inner, options={"machine": "cpu"})
        tp.parallelize_module(module, MESH, {"last": tp.ColwiseParallel(output_layouts=tp.Replicate())}, example_inputs=X)
        self.assertGreater(module.report.prediction.seconds, 0)
        with self.assertRaisesRegex(tp.PlanError, r"options\['machine'\] is 'h100' here, and 'cpu' at|options\['machine'\] is 'cpu' here"):
            tp.parallelize_module(module, MESH, {"last": tp.ColwiseParallel(output_layouts=tp.Replicate())}, example_inputs=X,
                                  options={"machine": "h100"})

    def test_a_fork(self):
        module = parallelize(make(MLP), example_inputs=X)
        read, write = os.pipe()
        if not (child := os.fork()):
            message = "no error"
            try:
                with torch.no_grad():
                    module(X)
            except tp.Error as error:
                message = str(error)
            finally:
                os.write(write, message.encode())
                os._exit(0)
        os.waitpid(child, 0)
        self.assertIn("was forked", os.read(read, 1000).decode())


class Errors(unittest.TestCase):
    def test_meshes(self):
        mesh = tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        with self.assertRaisesRegex(tp.MeshError, "has a dimension 'tp' already"):
            mesh._flatten("tp")
        self.assertEqual(mesh["tp"].size(), 2)

    def test_data_parallelism(self):
        with self.assertRaisesRegex(tp.UnsupportedError, "takes one module; found list"):
            tp.fully_shard([make(MLP), make(MLP)], mesh=MESH)
        tp.DistributedDataParallel(make(MLP), device_mesh=MESH, device_ids=None, find_unused_parameters=False)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'devices'"):
            tp.DistributedDataParallel(make(MLP), device_mesh=MESH, devices=None)

    def test_explanations(self):
        module = parallelize(make(MLP), example_inputs=X)
        for value in ("up} format=json", "a b", "x,y"):
            with self.assertRaisesRegex(tp.InputError, "a value to explain is named as in"):
                module.explain(value)


class Cache(unittest.TestCase):
    def test_what_a_program_depends_on(self):
        from tp_mlir import artifacts, cpu
        self.assertIn("flags", " ".join(cpu.describe_cpu()))
        libraries = " ".join(artifacts._list_libraries())
        for name in ("_native", "libLLVM", "libMLIR", "libtprt"):
            self.assertIn(name, libraries)

    def test_its_size_is_limited(self):
        from tp_mlir import artifacts
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(artifacts, "_MAX_BYTES", 250):
            for time, name in enumerate("abcd"):
                path = pathlib.Path(folder, f"{name}.tpx")
                path.write_bytes(bytes(100))
                os.utime(path, (time, time))
            artifacts._limit(pathlib.Path(folder))
            self.assertEqual(sorted(os.listdir(folder)), ["c.tpx", "d.tpx"])


class Training(unittest.TestCase):
    def make_step(self, make_optimizer=torch.optim.AdamW, kind=MLP, **options):
        module = make(kind)
        optimizer = make_optimizer(module.parameters(), lr=1e-2)
        return tp.train_step(module, MESH, PLAN, loss="mse", optimizer=optimizer, **options), module, optimizer

    @staticmethod
    def step(model, optimizer, x=X):
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()

    def check(self, change, *, steps=2, **options):
        """Two steps, a change of module and optimizer, and two steps, compared with PyTorch."""
        step, module, optimizer = self.make_step(**options)
        expected = make(MLP)
        other = torch.optim.AdamW(expected.parameters(), lr=1e-2)
        for run, model, its_optimizer in ((lambda: step(X, target=X), module, optimizer),
                                          (lambda: self.step(expected, other), expected, other)):
            for _ in range(steps):
                run()
            change(model, its_optimizer)
            for _ in range(steps):
                run()
        for one, wanted in zip(module.state_dict().values(), expected.state_dict().values()):
            compare(one, wanted, 1e-4)

    def test_load_state_dict(self):
        state = {name: value + 0.5 for name, value in make(MLP).state_dict().items()}
        for update_module in (True, False):
            self.check(lambda model, _: model.load_state_dict(state), update_module=update_module)
            self.check(lambda model, _: model.up.load_state_dict({name: state[f"up.{name}"] for name in ("weight", "bias")}),
                       update_module=update_module)

    def test_hyperparameters(self):
        self.check(lambda _, optimizer: optimizer.param_groups[0].update(weight_decay=0.5, betas=(0.5, 0.6)))

    def test_emptied_state(self):
        self.check(lambda model, optimizer: optimizer.load_state_dict(torch.optim.AdamW(model.parameters(), lr=1e-2).state_dict()))

    def test_state_that_is_read_and_written(self):
        states = []
        self.check(lambda _, optimizer: states.append({name: value.clone() for values in optimizer.state.values()
                                                       for name, value in values.items()}))
        self.assertEqual(len(states[0]), 3)
        for name, value in states[1].items():
            compare(states[0][name], value, 1e-4)
        self.check(lambda _, optimizer: optimizer.state.clear())
        self.check(lambda _, optimizer: setattr(optimizer, "state", collections.defaultdict(dict)))
        self.check(lambda _, optimizer: [values["exp_avg"].zero_() for values in optimizer.state.values()])
        with self.assertRaisesRegex(tp.UnsupportedError, r"different numbers of steps: \[0, 2\]"):
            self.check(lambda model, optimizer: optimizer.state.pop(model.up.weight))

    def test_state_that_is_emptied_under_a_schedule(self):
        module = make(MLP)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
        step = tp.train_step(module, MESH, PLAN, loss="mse", optimizer=optimizer,
                             schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4))
        step(X, target=X)
        optimizer.state.clear()
        for _ in range(2):
            with self.assertRaisesRegex(tp.InputError, "has been changed from 1 steps to 0, and the schedule of a program follows these"):
                step(X, target=X)

    def test_garbage(self):
        step, module, optimizer = self.make_step(update_module=False)
        for _ in range(2):
            step(X, target=X)
        weak = weakref.ref(step)
        del step
        self.assertIsNone(weak())
        expected = make(MLP)
        other = torch.optim.AdamW(expected.parameters(), lr=1e-2)
        self.step(expected, other), self.step(expected, other)
        compare(module.up.weight, expected.up.weight, 1e-4)
        self.assertEqual([values["step"] for values in optimizer.state.values()], [values["step"] for values in other.state.values()])
        for hooks in (module._forward_pre_hooks, module._state_dict_pre_hooks, module._load_state_dict_pre_hooks,
                      optimizer._optimizer_state_dict_pre_hooks, optimizer._optimizer_load_state_dict_post_hooks):
            self.assertEqual(len(hooks), 0)

    def test_refresh(self):
        def write(model, _):
            model.up.weight.data.add_(1)
            if isinstance(model, tp.ParallelModule):
                model.refresh()

        self.check(write)

    def test_frozen_parameters(self):
        def freeze(model, optimizer):
            model.up.weight.requires_grad_(False)
            model.up.weight.grad = None

        self.check(freeze)

    def test_two_steps_with_one_optimizer(self):
        step, module, optimizer = self.make_step()
        second = tp.train_step(module, loss={"name": "mse", "reduction": "mean"}, optimizer=optimizer)
        expected = make(MLP)
        other = torch.optim.AdamW(expected.parameters(), lr=1e-2)
        for run in (step, second, step):
            run(X, target=X)
            self.step(expected, other)
        for one, wanted in zip(module.state_dict().values(), expected.state_dict().values()):
            compare(one, wanted, 1e-4)
        self.assertEqual(step.state_dict()["steps"], 3)

    def test_interrupted_step(self):
        step, module, optimizer = self.make_step()
        step(X, target=X)
        executable = step._active
        run = executable._run_flat

        def interrupted(*args):
            run(*args)
            raise KeyboardInterrupt

        executable._run_flat = interrupted
        with self.assertRaises(KeyboardInterrupt):
            step(X, target=X)
        executable._run_flat = run
        expected = make(MLP)
        other = torch.optim.AdamW(expected.parameters(), lr=1e-2)
        self.step(expected, other), self.step(expected, other)
        compare(module.state_dict()["up.weight"], expected.up.weight, 1e-4)
        self.assertEqual(step.state_dict()["steps"], 2)
        self.assertEqual(int(optimizer.state_dict()["state"][0]["step"]), 2)

    def test_schedules(self):
        module = make(MLP)
        adam = torch.optim.AdamW([{"params": [module.up.weight]}, {"params": [module.up.bias]}], lr=1e-2)
        from transformers import get_constant_schedule_with_warmup
        schedule = get_constant_schedule_with_warmup(adam, 2)
        schedule.lr_lambdas[1] = lambda step: 0.5
        with self.assertRaises(tp.UnsupportedError):
            tp.train_step(module, MESH, PLAN, loss="mse", optimizer=adam, schedule=schedule)
        adam = torch.optim.AdamW(module.parameters(), lr=1e-2)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 1)
        step = tp.train_step(module, MESH, PLAN, loss="mse", optimizer=adam, schedule=cosine)
        step(X, target=X), step(X, target=X)
        with self.assertRaisesRegex(tp.InputError, "CosineAnnealingLR has ended: 2 steps are done, and its T_max is 1"):
            step(X, target=X)
        adam = torch.optim.AdamW(module.parameters(), lr=1e-2)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 4)
        adam.step(), cosine.step()
        with self.assertRaisesRegex(tp.UnsupportedError, "the scheduler has done 1 steps, and the optimizer 0"):
            tp.train_step(module, loss="mse", optimizer=adam, schedule=cosine)

    def test_hooks_and_autocast(self):
        step, module, _ = self.make_step()
        with torch.autocast("cpu"), self.assertRaisesRegex(tp.UnsupportedError, "torch.autocast has no effect"):
            step(X, target=X)
        step(X, target=X)
        module.register_forward_hook(lambda *_: None)
        with self.assertRaisesRegex(tp.UnsupportedError, "MLP, of which a training step is made, has the forward hook"):
            step(X, target=X)


class Threads(unittest.TestCase):
    def test_calls_while_another_thread_exports(self):
        module, expected, calls = parallelize(make(Observed)), make(MLP), []

        def start_call():
            if not calls:
                calls.append(pool.submit(torch.no_grad()(module.forward), X))
                time.sleep(0.1)  # the call waits for the export

        module.observe = start_call
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            compare(module(X[:2]), expected(X[:2]))
            compare(calls[0].result(), expected(X))
        module(X[:2]).sum().backward()  # the gradients are those of the exported call
        expected(X[:2]).sum().backward()
        compare(module.up.weight.grad, expected.up.weight.grad)

    @torch.no_grad()
    def test_hooks_while_a_thread_exports(self):
        """Of the module that is exported, of one that is parallelized, too, and of one of PyTorch."""
        entered = threading.Event()

        def enter(_, args):
            entered.set()
            time.sleep(0.1)  # the thread that exports goes on meanwhile
            return (args[0] * 3,)

        def add_hooks(module):
            module.register_forward_pre_hook(enter)
            module.register_forward_hook(lambda _, args, output: output + 1)
            return module

        expected = add_hooks(make(MLP))
        for kind in ("same", "parallelized", "eager"):
            module, calls = add_hooks(parallelize(make(Observed))), []
            callee = {"same": module, "parallelized": add_hooks(parallelize(make(MLP))), "eager": expected}[kind]

            def start_call():
                if not calls:
                    entered.clear()
                    calls.append(pool.submit(torch.no_grad()(callee), X))
                    entered.wait(0.2)  # the call of the same module waits for the export

            module.observe = start_call
            with self.subTest(kind), concurrent.futures.ThreadPoolExecutor(1) as pool:
                compare(module(X[:2]), expected(X[:2]))
                compare(calls[0].result(), expected(X))

    def test_calls_while_another_thread_compiles(self):
        module, kinds, failures = parallelize(make(MLP)), [], []
        with torch.no_grad():
            expected = make(MLP)(X)
            module(X)

        def call():
            try:
                with torch.no_grad():
                    while not kinds:
                        compare(module.forward(X), expected, 1e-5)
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        with torch.no_grad():
            for size in (1, 2, 3):
                module(X[:size])
        kinds.append(True)
        thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
