from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from t2t_repro.cli import loading


def test_a_command_keeps_freed_memory_before_it_imports_tensorflow(monkeypatch):
    order = []
    monkeypatch.setattr(loading, "keep_freed_memory", lambda: order.append("keep"))
    monkeypatch.setattr(loading.importlib, "import_module", order.append)
    loading.import_tensorflow()
    assert order == ["keep", "tensorflow", "keras"]


def test_the_banner_of_the_import_is_left_out_and_its_errors_are_not(capfd):
    error, later = b"E0000 00:00:17.6 11225 cuda.cc:1] no device\n", b"I0000 later\n"
    with loading._drop_banner():
        os.write(2, b"I0000 00:00:17.6 11225 port.cc:153] oneDNN is on.\n")
        os.write(2, b"WARNING: All log messages before absl::InitializeLog() is\n")
        os.write(2, error)
    os.write(2, later)
    assert capfd.readouterr().err == (error + later).decode()


def test_a_package_that_is_left_out_looks_as_if_it_were_not_installed(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with loading._hide_packages(["this", "os"]):
        with pytest.raises(ImportError):
            importlib.import_module("this")
        assert importlib.util.find_spec("this") is None
        # It is loaded already, and stays.
        assert importlib.import_module("os") is os
    assert "this" not in sys.modules
    assert importlib.util.find_spec("this") is not None


@pytest.fixture(scope="module")
def new_process():
    """Return what a new process says of threads and of imported packages.

    The threads can be set only before TensorFlow's first operation.
    """
    program = (
        "import os\n"
        "import sys\n"
        "from t2t_repro.cli import decode, loading\n"
        "loading.import_tensorflow()\n"
        "import tensorflow as tf\n"
        "for setting in ('3', None):\n"
        "    os.environ.pop('TF_NUM_INTRAOP_THREADS', None)\n"
        "    if setting:\n"
        "        os.environ['TF_NUM_INTRAOP_THREADS'] = setting\n"
        "    loading._use_one_thread_per_operation()\n"
        "    print(tf.config.threading.get_intra_op_parallelism_threads())\n"
        "from t2t_repro.runs import System\n"
        "import t2t_repro.models.transformer\n"
        "unwanted = ['jax', 'matplotlib', 'tensorflow_text', 'tensorflow_datasets',\n"
        "            'sacrebleu', 'scipy', 'sklearn', 'pandas']\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def test_a_translation_imports_no_package_that_only_other_commands_need(new_process):
    assert new_process[2:] == ["[]"]


def test_an_operation_has_one_thread_unless_the_environment_sets_more(new_process):
    assert new_process[:2] == ["0", "1"]


def test_threads_that_are_in_use_stay(monkeypatch):
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    tf.constant(1)
    before = tf.config.threading.get_intra_op_parallelism_threads()
    loading._use_one_thread_per_operation()
    assert tf.config.threading.get_intra_op_parallelism_threads() == before
