"""`t2t serve`: flags, the models that they name, and the server."""

from __future__ import annotations

import argparse
import copy
import importlib
import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.cli.flags import (
    add_decode_hparams_flag,
    add_setting_flag,
    add_system_flags,
    number_in_range,
)
from t2t_repro.cli.loading import import_tensorflow, load_catalogue, load_system
from t2t_repro.errors import UsageError, UserError
from t2t_repro.features.ctranslate2 import command_engine
from t2t_repro.features.serving.service_settings import ServiceSettings
from t2t_repro.progress import status
from t2t_repro.settings.decode_hparams import DecodeHParams

if TYPE_CHECKING:
    from t2t_repro.features.serving.http_access import Access
    from t2t_repro.features.serving.served_models import ServedModel

logger = logging.getLogger(__name__)

DESCRIPTION = (
    "Answer HTTP requests for translations: TensorFlow Serving's REST interface, "
    "LibreTranslate's, and a page at /. Runs until SIGTERM or Ctrl-C."
)
TENSORFLOW, CTRANSLATE2 = "tensorflow", "ctranslate2"
KEY_VARIABLE = "T2T_API_KEY"
_PACKAGES = ("starlette", "uvicorn", "prometheus_client", "sentencex")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = ("127.0.0.1", "::1", "localhost")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_system_flags(parser, required=False, ensembles=True)
    parser.add_argument(
        "--export_dir",
        metavar="DIR",
        help="folder of t2t export instead: a SavedModel, or a CTranslate2 model",
    )
    parser.add_argument(
        "--model",
        metavar="NAME=DIR",
        nargs="+",
        action="extend",
        help="several models instead, each a run or an export, by the names that "
        "requests use; a name such as en-de also gives the languages",
    )
    parser.add_argument(
        "--engine",
        choices=(TENSORFLOW, CTRANSLATE2),
        default=TENSORFLOW,
        help="engine of runs (default: tensorflow); ctranslate2 is faster on CPUs",
    )
    command_engine.add_quantization_flag(parser, "--engine ctranslate2")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on "
        "(default: 127.0.0.1, this machine alone; 0.0.0.0 = every network)",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=number_in_range(0, int, 65535),
        default=8000,
        help="port (default: 8000; 0 = any that is free)",
    )
    limits = parser.add_argument_group("limits")
    for name in ServiceSettings.names():
        remark = "" if name == "workers" else None  # its help says the default
        add_setting_flag(limits, ServiceSettings, name, remark)
    _add_access_flags(parser)
    add_decode_hparams_flag(parser, "decode")


def _add_access_flags(parser: argparse.ArgumentParser) -> None:
    access = parser.add_argument_group("access")
    access.add_argument(
        "--api_key_file",
        metavar="FILE",
        help="file of API keys, one per line, of which each request needs one; without "
        f"it, the key is ${KEY_VARIABLE}, if it is set",
    )
    access.add_argument(
        "--cors_origin",
        metavar="ORIGIN",
        nargs="+",
        action="extend",
        default=[],
        help="origins of other sites whose pages may ask, such as https://example.org",
    )
    access.add_argument(
        "--allowed_host",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="names of this server in requests, besides those of this machine; any if "
        "--host is not this machine alone",
    )
    access.add_argument(
        "--log_requests",
        action="store_true",
        help="log a line per request, without its texts",
    )
    access.add_argument(
        "--log_texts",
        action="store_true",
        help="log a line per request, with its texts",
    )


def run(args: argparse.Namespace) -> int:
    """Load the models and serve them."""
    folders = _folders(args)
    hparams = DecodeHParams().parse_for("decode", args.decode_hparams)
    settings = _settings(args)
    check_packages()
    from t2t_repro.features.serving.http_app import create_app
    from t2t_repro.features.serving.http_server import HttpServer, address_of, bind
    from t2t_repro.features.serving.service import Service

    access = _access(args)
    # Report a port in use before a model is loaded.
    bound = bind(args.host, args.port)
    models = [
        _load(args, name, folder, hparams, settings.num_workers)
        for name, folder in folders.items()
    ]
    _check_names(models)
    for model in models:
        with status(f"preparing {model.name}"):
            model.warm_up()
    service = Service(models, settings)
    address = address_of(bound)

    def started() -> None:
        for model in models:
            logger.info("%s: %s, at %s", model.name, model.engine, address)
        print(address, flush=True)

    app = create_app(service, access)
    HttpServer(app, service, bound, started).run_until_stopped()
    logger.info("all accepted requests are answered")
    return 0


def check_packages() -> None:
    """Refuse an installation without the packages of the extra `serve`.

    Raises:
        UserError: If one is missing.
    """
    for package in _PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise UserError(
                f"t2t serve needs the package {package} ({error}): install it with "
                "`pip install 't2t-repro[serve]'`."
            ) from error


def _folders(args: argparse.Namespace) -> dict[str, str]:
    """Return the folder of each model by its name, "" for one that has none yet."""
    given = {"output_dir": args.output_dir, "export_dir": args.export_dir}
    given = {f"--{name}": path for name, path in given.items() if path is not None}
    if len(given) + bool(args.model) != 1:
        shown = [*given, *["--model"] * bool(args.model)]
        raise UsageError(
            f"received {' and '.join(shown) or 'no model'}, expected one of "
            "--output_dir RUN, --export_dir EXPORT and --model NAME=DIR."
        )
    if args.quantization is not None and args.engine != CTRANSLATE2:
        raise UsageError(
            "received --quantization without --engine ctranslate2, without which it "
            "would have no effect."
        )
    if args.checkpoint_path is not None and args.output_dir is None:
        raise UsageError("received --checkpoint_path without --output_dir.")
    if given:
        return dict.fromkeys([""], *given.values())
    pairs = [text.partition("=") for text in args.model]
    for name, equals, folder in pairs:
        if not equals or not folder or not _NAME.fullmatch(name):
            raise UsageError(
                f"received --model {name}{equals}{folder}, expected NAME=DIR with a "
                "name of letters, digits, '.', '_' and '-'."
            )
    counts = Counter(name for name, *_ in pairs)
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise UsageError(f"received --model {name} {count} times, expected once.")
    return {name: folder for name, _, folder in pairs}


def _settings(args: argparse.Namespace) -> ServiceSettings:
    given = {name: getattr(args, name) for name in ServiceSettings.names()}
    return ServiceSettings(**{n: v for n, v in given.items() if v is not None})


def _access(args: argparse.Namespace) -> Access:
    from t2t_repro.features.serving.http_access import Access

    is_local = args.host in _LOCAL
    hosts = [*_LOCAL, *args.allowed_host] if is_local or args.allowed_host else []
    return Access(
        keys=_keys(args.api_key_file),
        hosts=hosts,
        cors_origins=args.cors_origin,
        log_requests=args.log_requests,
        log_texts=args.log_texts,
    )


def _keys(file: str | None) -> list[str]:
    """Return the API keys of the file, or of the environment."""
    if file is None:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        return _checked_keys([key] if key else [], f"${KEY_VARIABLE}")
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UserError(f"cannot read --api_key_file {file}: {reason}.") from error
    keys = [line.strip() for line in lines if line.strip()]
    if not keys:
        raise UserError(f"--api_key_file {file} has no key: write one per line.")
    return _checked_keys(keys, f"--api_key_file {file}")


def _checked_keys(keys: list[str], place: str) -> list[str]:
    if not all(key.isascii() and key.isprintable() for key in keys):
        raise UserError(
            f"{place} has a key with other characters than those of ASCII, which no "
            "header can have."
        )
    return keys


def _load(
    args: argparse.Namespace,
    name: str,
    folder: str,
    hparams: DecodeHParams,
    num_workers: int,
) -> ServedModel:
    """Load a run or an export; one without a name gets that of its languages."""
    from t2t_repro.features.serving.served_models import ServedExport, ServedSystem

    own = copy.copy(args)
    own.output_dir = folder
    if (Path(folder) / "saved_model.pb").is_file():
        _refuse_other_settings(args, folder)
        import_tensorflow()
        return ServedExport(name or "default", folder)
    system = _load_system(own, hparams, num_workers)
    problem = system.problem
    pair = problem.source_language, problem.target_language
    name = name or ("default" if None in pair else "-".join(map(str, pair)))
    return ServedSystem(name, system, system.with_problem_defaults(hparams))


def _load_system(
    args: argparse.Namespace, hparams: DecodeHParams, num_workers: int
) -> Any:
    from t2t_repro.features.ctranslate2.ctranslate2_system import (
        DESCRIPTION_FILE,
        CTranslate2System,
    )

    if (Path(args.output_dir) / DESCRIPTION_FILE).is_file():
        load_catalogue(args.t2t_usr_dir)
        system = CTranslate2System(args.output_dir, args.t2t_usr_dir)
    elif args.engine == CTRANSLATE2:
        args.export_dir = None
        system = command_engine.load(args, hparams)
    else:
        return load_system(args, hparams, ensembles=True, parallel_batches=True)
    # One more than there are batches of ordinary sentences; see `Batches`.
    system.num_threads = num_workers + 1
    return system


def _refuse_other_settings(args: argparse.Namespace, folder: str) -> None:
    if args.engine != TENSORFLOW or args.decode_hparams:
        raise UsageError(
            f"received {folder}, a SavedModel, with --engine ctranslate2 or "
            "--decode_hparams: its engine and its search were chosen by t2t export."
        )


def _check_names(models: list[ServedModel]) -> None:
    for model in models:
        if not _NAME.fullmatch(model.name):
            raise UserError(
                f"received a model whose languages are {model.name!r}: name it with "
                "--model NAME=DIR."
            )
