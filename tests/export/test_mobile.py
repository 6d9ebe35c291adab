"""Names around scripts that programs for phones use, and FileCheck."""

from __future__ import annotations

import copy
import io
import re
import warnings

import pytest

import clew
from clew import jit, nn
from clew._torch.jit.mobile import _export_operator_list, _load_for_lite_interpreter
from clew._torch.utils.mobile_optimizer import (
    LintCode,
    MobileOptimizerType,
    generate_mobile_module_lints,
    optimize_for_mobile,
)
from clew.testing import FileCheck

X = clew.randn(2, 1, 5, 5)


class Halving(nn.Module):
    def forward(self, x):
        while x.sum() > 1:
            x = x * 0.5
        return x


def scripted():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.5))
    made = jit.script(net)
    made(X)
    return made


def test_a_copy_in_evaluation_mode_that_can_be_stored():
    made = scripted()
    optimized = optimize_for_mobile(made)
    assert isinstance(optimized, jit.ScriptModule) and made.training and not optimized.training
    assert not any(p.requires_grad for p in optimized.parameters())
    assert all(p.requires_grad for p in made.parameters())
    expected = made.eval()(X)
    clew.testing.assert_close(optimized(X), expected)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the example of the first call is known
        optimized._save_for_lite_interpreter(file)
    file.seek(0)
    loaded = _load_for_lite_interpreter(file)
    clew.testing.assert_close(loaded(X), expected)
    names = ["aten::batch_norm", "aten::conv2d", "aten::relu"]
    assert jit.export_opnames(optimized) == names and _export_operator_list(loaded) == {*names}


def test_what_it_refuses():
    made = scripted()
    with pytest.raises(TypeError, match="ScriptModule is expected"):
        optimize_for_mobile(nn.ReLU())
    with pytest.raises(AttributeError, match="do not exist in script_module: other"):
        optimize_for_mobile(made, preserved_methods=["forward", "other"])
    with pytest.raises(TypeError, match="Unknown backend"):
        optimize_for_mobile(made, backend="tpu")
    with pytest.raises(NotImplementedError, match="CPU, not on Vulkan"):
        optimize_for_mobile(made, backend="Vulkan")
    with pytest.raises(TypeError, match="no MobileOptimizerType"):
        optimize_for_mobile(made, {"bn"})
    assert optimize_for_mobile(made, {MobileOptimizerType.CONV_BN_FUSION}) is not made
    with pytest.raises(TypeError, match="expected a ScriptModule"):
        jit.export_opnames(nn.ReLU())


def test_lints():
    found = generate_mobile_module_lints(scripted())
    names = [lint["name"] for lint in found]
    assert names.count(LintCode.REQUIRES_GRAD.name) == 4 and names[0] == "BUNDLED_INPUT"
    assert {"DROPOUT", "BATCHNORM"} <= {*names}
    assert [x["name"] for x in generate_mobile_module_lints(jit.trace(nn.ReLU(), X))] == names[:1]


def test_a_copied_script_keeps_its_example():
    made = copy.deepcopy(scripted().eval())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.graph.findNode("aten::relu") is not None


def test_eval_tells_what_it_does_not_change():
    traced = jit.trace(nn.Sequential(nn.Dropout(0.5)).train(), X, check_trace=False)
    with pytest.warns(UserWarning, match="recorded in training mode, and eval.. leaves .*dropout"):
        traced.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced.eval()  # said once
        jit.trace(nn.Sequential(nn.ReLU()).train(), X).eval()


def test_a_graph_as_it_is_printed():
    text = str(jit.trace(Halving(), X).graph)
    checks = FileCheck().check("graph(%x").check("aten::sum(%x)").check("prim::Loop")
    checks.check_next("block0").check("aten::mul(%carried, 0.5)").check("-> (").check("return (")
    checks.run(text)
    checks.run(jit.trace(Halving(), X).graph)
    assert re.search(r"aten::mul.* # .*test_mobile.py:\d+", text)


TEXT = "a = relu(x)\nb = relu(a)\n    ~~~~\nc = tanh(b)\nreturn c\n"


def test_file_check_finds_texts_in_order():
    FileCheck().check("relu").check("tanh").check_not("relu").run(TEXT)
    FileCheck().check("a =").check_same("relu").check_next("b =").run(TEXT)
    FileCheck().check_count("relu", 2, exactly=True).check("return").run(TEXT)
    FileCheck().check_count("relu", 1).check("relu").run(TEXT)
    FileCheck().check_dag("tanh").check_dag("b =").check("return").run(TEXT)
    FileCheck().check_regex(r"[bc] = \w+\(").check_not("sigmoid").run(TEXT)
    FileCheck().check_source_highlighted("relu").check_next("~").check_next("tanh").run(TEXT)
    FileCheck().run("# CHECK: relu\n# CHECK-NEXT: b\n# CHECK-COUNT-1: tanh", TEXT)


@pytest.mark.parametrize(
    "checks",
    [
        lambda f: f.check("sigmoid"),
        lambda f: f.check("tanh").check("relu"),
        lambda f: f.check("a =").check_not("b =").check("tanh"),
        lambda f: f.check_not("relu"),
        lambda f: f.check("return").check_not("c"),
        lambda f: f.check("a =").check_same("tanh"),
        lambda f: f.check("a =").check_next("tanh"),
        lambda f: f.check_count("relu", 3),
        lambda f: f.check_count("relu", 1, exactly=True),
        lambda f: f.check_dag("tanh").check_dag("nothing"),
        lambda f: f.check_regex(r"z = \w+"),
        lambda f: f.check_source_highlighted("tanh"),
    ],
)
def test_file_check_says_what_is_not_there(checks):
    with pytest.raises(RuntimeError, match=r"(?s)Expected to.*Searched string:.*From CHECK"):
        checks(FileCheck()).run(TEXT)


def test_file_check_needs_checks():
    with pytest.raises(RuntimeError, match="no checks"):
        FileCheck().run(TEXT)
    with pytest.raises(TypeError, match="expected a string"):
        FileCheck().check(3)
    with pytest.raises(RuntimeError, match="there is no CHECK-MAYBE"):
        FileCheck().run("# CHECK-MAYBE: x", TEXT)
    assert "CHECK-NOT: b" in repr(FileCheck().check("a").check_not("b"))
