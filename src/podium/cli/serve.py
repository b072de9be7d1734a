"""``podium serve``: saved rankers behind HTTP."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from podium.cli.options import ClusterAddress, parse_pair, parse_share
from podium.errors import ArgumentError


def serve_command(
    rankers: Annotated[
        list[str],
        typer.Argument(
            metavar="RANKER...",
            help="Saved rankers, or models of LightGBM, XGBoost or CatBoost: FILE, NAME=FILE or "
            "NAME@VERSION=FILE. The first is the default.",
        ),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")
    ] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Server processes.")] = 1,
    token_file: Annotated[
        str | None,
        typer.Option(help="Lines of a token's SHA-256, a name and, if it may load models, admin."),
    ] = None,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            help="A ranker that scores the same requests for the ranking log only: FILE, or "
            "NAME=FILE for the model NAME."
        ),
    ] = None,
    absent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FEATURE=VALUE",
            help="The value of a feature that a document leaves out; null for a missing value. "
            "Other features may not be left out.",
        ),
    ] = None,
    ranking_log: Annotated[
        str | None, typer.Option(help="A folder to log rankings to, with features and scores.")
    ] = None,
    log_sample: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="The share of rankings that are logged.")
    ] = 1.0,
    log_days: Annotated[
        float | None,
        typer.Option(min=0.1, help="Files of the ranking log are removed after so many days."),
    ] = None,
    log_gigabytes: Annotated[
        float | None,
        typer.Option(min=0.1, help="The oldest are removed if the ranking log is larger."),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request, not only refused ones.")
    ] = False,
    search: Annotated[
        str | None,
        typer.Option(help="A TOML file: the engine whose searches /search reranks."),
    ] = None,
    interleave: Annotated[
        str | None,
        typer.Option(
            metavar="OLD,NEW",
            help="Two models of which some searches show a draft; one of them is the model of all "
            "others. /search does so itself, /rank where a request says so.",
        ),
    ] = None,
    share: Annotated[
        str, typer.Option(help="The share of searches, or of clients, that are interleaved: 10%.")
    ] = "100%",
    interleave_method: Annotated[
        Literal["team-draft", "probabilistic", "balanced"],
        typer.Option(help="How two rankings become one."),
    ] = "team-draft",
    interleave_key_file: Annotated[
        str | None,
        typer.Option(help="A key of who takes part, for several services with one experiment."),
    ] = None,
    cluster: ClusterAddress = None,
    replicas: Annotated[
        int, typer.Option(min=1, max=10_000, help="With --cluster: the number of replicas.")
    ] = 1,
    max_replicas: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="With --cluster: replicas are added under load up to this number.",
        ),
    ] = None,
) -> None:
    """Serve rankers over HTTP: the Open Inference Protocol, and /rank with named features.

    SIGHUP reads the files anew without losing a request; SIGTERM answers what was asked and ends.
    With --cluster, the service runs on Ray Serve and stays there; deploying it again replaces it.
    """
    # Imported here: they need packages that other commands do not.
    from podium.serving import ServingSettings
    from podium.serving.experiment import InterleaveSettings
    from podium.serving.search_settings import read_search_settings
    from podium.serving.server import run_server
    from podium.serving.settings import ModelSpec, parse_model

    models = tuple(map(parse_model, rankers))
    keys = [(model.name, model.version) for model in models]
    for key in keys:
        if keys.count(key) > 1:
            raise ArgumentError(
                f"version {key[1]} of {key[0]} is given twice", hint="Give NAME@VERSION=FILE."
            )
    shadows = []
    for text in shadow or []:
        spec = parse_model(text if "=" in text else f"{models[0].name}={text}")
        if spec.name not in {model.name for model in models}:
            raise ArgumentError(f"{spec.name} is not served", hint="Give --shadow NAME=FILE.")
        shadows.append(ModelSpec(spec.name, 1, spec.path))
    if len({spec.name for spec in shadows}) < len(shadows):
        raise ArgumentError("a model has two shadows", hint="Give one.")
    if shadows and ranking_log is None:
        raise ArgumentError(
            "the scores of a shadow go to the ranking log", hint="Add --ranking-log FOLDER."
        )
    engine = None if search is None else read_search_settings(search)
    experiment = None
    if interleave is not None:
        if ranking_log is None:
            raise ArgumentError(
                "what was shown of an experiment is in the ranking log",
                hint="Add --ranking-log FOLDER.",
            )
        old, new = parse_pair(interleave)
        for name in (old, new):
            if name not in {model.name for model in models}:
                raise ArgumentError(f"{name} is not served", hint="Name two of the models.")
        usual = (None if engine is None else engine.model) or models[0].name
        if usual not in (old, new):
            raise ArgumentError(
                f"{usual} ranks all other searches, and is neither {old} nor {new}",
                hint="Interleave it with another model.",
            )
        part = parse_share(share)
        if not 0 < part <= 1:
            raise ArgumentError(f"share is {share}", hint="Give one above 0 and up to 100%.")
        if cluster is not None and interleave_key_file is None:
            raise ArgumentError(
                "replicas share no key", hint="Add --interleave-key-file, a file that all have."
            )
        experiment = InterleaveSettings(old, new, part, interleave_method, interleave_key_file)
    elif interleave_key_file is not None or share != "100%":
        raise ArgumentError("--share is of --interleave", hint="Add --interleave OLD,NEW.")
    settings = ServingSettings(
        models=models, shadows=tuple(shadows), absent=dict(map(_absent, absent or [])),
        token_file=token_file, ranking_log=ranking_log, log_sample=log_sample,
        log_days=log_days, log_gigabytes=log_gigabytes, access_log=access_log,
        search=engine, interleave=experiment,
    )  # fmt: skip
    if cluster is None:
        if replicas > 1 or max_replicas is not None:
            raise ArgumentError(
                "replicas are those of a cluster", hint="Add --cluster, or give --workers."
            )
        run_server(settings, host, port, workers)
        return
    if workers > 1:
        raise ArgumentError("a replica is one process", hint="Give --replicas, not --workers.")
    from podium.serving.replicas import Scale, serve_on_cluster

    serve_on_cluster(settings, cluster, Scale(replicas, max_replicas), host=host, port=port)


def _absent(text: str) -> tuple[str, float | None]:
    name, equals, value = text.rpartition("=")
    try:
        number = None if value == "null" else float(value)
        if not equals or (number is not None and not math.isfinite(number)):
            raise ValueError(text)
        return name, number
    except ValueError as error:
        raise ArgumentError(
            f"{text!r} is not FEATURE=VALUE", hint="Give a number or null: --absent age=null."
        ) from error
