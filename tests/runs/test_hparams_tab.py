from __future__ import annotations

import pytest
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import (
    api_pb2,
    backend_context,
    get_experiment,
    list_session_groups,
)

from t2t_repro.runs.tensorboard import write_completion, write_hparams
from t2t_repro.training.metrics_log import MetricsLog

SCORES = {"first": (10.0, 31.0), "second": (20.0, 25.0)}


@pytest.fixture
def table(tmp_path):
    """Return TensorBoard's table of two runs, one of which is complete."""
    for name, scores in SCORES.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        log = MetricsLog(folder)
        rate = 1.0 if name == "first" else 0.5
        write_hparams(log, {"learning_rate": rate, "shared": True, "usr_dir": None})
        for step, score in enumerate(scores):
            log.scalars("eval", step, {"bleu": score})
        log.scalars("train", 1, {"loss": 1.0})
        if name == "first":
            write_completion(log)
    return context_of(tmp_path)


def context_of(folder):
    """Return what TensorBoard reads from a folder."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(folder))
    context = base_plugin.TBContext(data_provider=provider)
    return backend_context.Context(context)


def rows_of(table):
    """Return the rows as the tab shows them, sorted by BLEU, best first."""
    experiment = get_experiment.Handler(
        RequestContext(), table, "", api_pb2.GetExperimentRequest(include_metrics=True)
    ).run()
    metrics = [info.name for info in experiment.metric_infos]
    (bleu,) = [name for name in metrics if name.tag == "evaluation/bleu"]
    columns = [
        api_pb2.ColParams(metric=bleu, order=api_pb2.ORDER_DESC, include_in_result=True)
    ]
    names = [info.name for info in experiment.hparam_infos]
    columns += [api_pb2.ColParams(hparam=n, include_in_result=True) for n in names]
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=10,
        col_params=columns,
        include_metrics=True,
        allowed_statuses=[
            api_pb2.STATUS_UNKNOWN,
            api_pb2.STATUS_SUCCESS,
            api_pb2.STATUS_RUNNING,
        ],
    )
    handler = list_session_groups.Handler(RequestContext(), table, "", request)
    return metrics, list(handler.run().session_groups)


def test_a_row_has_its_settings_by_type_its_last_score_and_its_status(table):
    metrics, rows = rows_of(table)
    assert {name.tag for name in metrics} == {"evaluation/bleu"}
    assert [row.name for row in rows] == ["runs/first", "runs/second"]
    assert [row.metric_values[0].value for row in rows] == [31.0, 25.0]
    assert [row.sessions[0].status for row in rows] == [
        api_pb2.STATUS_SUCCESS,  # only of the complete run
        api_pb2.STATUS_UNKNOWN,
    ]
    values = rows[1].hparams
    assert values["learning_rate"].number_value == 0.5
    assert values["shared"].bool_value is True
    assert values["usr_dir"].string_value == "None"


def test_the_score_of_translations_comes_before_the_other_scores(tmp_path):
    log = MetricsLog(tmp_path)
    write_hparams(log, {"hparams_set": "transformer_tiny"})
    scores = {"nll": 2.0, "perplexity": 7.4, "token_accuracy": 0.5, "bleu": 31.0}
    log.scalars("eval", 1, scores)
    metrics, _ = rows_of(context_of(tmp_path))
    tags = [name.tag for name in metrics]
    assert tags[0] == "evaluation/bleu"
    assert len(tags) == len(scores)
