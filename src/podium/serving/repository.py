"""The models of one process, replaced as a whole when a release changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from podium.data.definitions_hash import require_same_definitions
from podium.errors import DataError
from podium.export.reading import ranker_of_bytes
from podium.features import read_definitions
from podium.features.definitions import FeatureDefinitions
from podium.serving.model import ServedModel
from podium.serving.refusal import Refusal
from podium.serving.releases import Release, ReleasedModel, Releases, read_content
from podium.serving.settings import ModelSpec, ServingSettings
from podium.serving.text_model import ServedTextModel

Loaded = ServedModel | ServedTextModel

Key = tuple[str, int, bool]
"""A model's name and version, and whether it is a shadow."""


class Repository:
    """Loads the models of releases, and makes new ones.

    A request takes its model from here once, and keeps it whatever happens meanwhile. Models are
    loaded and checked before anything is replaced, so that a broken file changes nothing.

    Args:
        settings: What is served.
        folder: What the processes of the service share.

    Attributes:
        definitions: Those of the features of searches, if there are searches.
        generation: The number of the release that is served.
    """

    def __init__(self, settings: ServingSettings, folder: Path) -> None:
        self._settings = settings
        self._specs: dict[Key, ModelSpec] = {
            (spec.name, spec.version, shadow): spec
            for shadow, specs in ((False, settings.models), (True, settings.shadows))
            for spec in specs
        }
        self.definitions = (
            None if settings.search is None
            else read_definitions(settings.search.definitions)
        )  # fmt: skip
        self._releases = Releases(folder)
        self._loaded: Mapping[Key, Loaded] = {}
        self._newest: Mapping[str, Loaded] = {}
        self._shadows: Mapping[str, ServedModel] = {}
        self.generation = 0

    @property
    def default_name(self) -> str:
        """The name of the model that requests without a name mean."""
        return self._settings.models[0].name

    def get(self, name: str | None = None, version: str | None = None) -> ServedModel:
        """Return a model of features, as ``find`` does; a Refusal if it ranks texts."""
        model = self._of_features(name, version)
        if model.reads_texts:
            raise Refusal(400, f"model {model.name!r} reads texts, too: it ranks searches only")
        return model

    def get_for_search(self, name: str | None = None) -> ServedModel:
        """Return a model for the candidates of searches, which may read their texts as well."""
        return self._of_features(name, None)

    def _of_features(self, name: str | None, version: str | None) -> ServedModel:
        model = self.find(name, version)
        if not model.reads_features:
            raise Refusal(400, f"model {model.name!r} ranks texts: send them to /rerank")
        return model

    def get_text(self, name: str | None = None) -> ServedTextModel:
        """Return a model of texts, by default the first of them; a Refusal if there is none."""
        if name is None:
            texts = [each for each in self._newest.values() if not each.reads_features]
            order = [spec.name for spec in self._settings.models]
            name = min((each.name for each in texts), key=order.index, default=None)
        model = self.find(name)
        if model.reads_features:
            raise Refusal(400, f"model {model.name!r} ranks documents by features, not texts")
        return model

    def find(self, name: str | None = None, version: str | None = None) -> Loaded:
        """Return a model, by default the newest version of the first; a Refusal if unknown."""
        name = self.default_name if name is None else name
        if version is None:
            model = self._newest.get(name)
        else:
            number = int(version) if version.isascii() and version.isdigit() else 0
            model = self._loaded.get((name, number, False)) if len(version) < 10 else None
        if model is None:
            text = f"model {name!r}" if version is None else f"version {version!r} of {name!r}"
            raise Refusal(404, f"{text} is not loaded")
        return model

    def shadow(self, name: str) -> ServedModel | None:
        """Return the shadow of a model, if it has one."""
        return self._shadows.get(name)

    def versions(self, name: str) -> list[int]:
        """Return the loaded versions of a model."""
        return sorted(key[1] for key in self._loaded if key[0] == name and not key[2])

    def index(self) -> list[tuple[ModelSpec, bool]]:
        """Return every model that can be loaded, and whether it is."""
        return [(spec, key in self._loaded) for key, spec in self._specs.items() if not key[2]]

    @property
    def ready(self) -> bool:
        """Whether a model is loaded."""
        return bool(self._newest)

    def apply(self) -> None:
        """Serve the newest release."""
        release = self._releases.current()
        if release.generation != self.generation:
            self._swap(release, {})

    def reload(self, names: Collection[str] | None = None) -> Release:
        """Read files anew and release what they hold now; a DataError if one is not valid.

        Args:
            names: The models to load; by default those of the release, or all at the start.
        """
        with self._releases.changing():
            self.apply()
            before = self._releases.current()
            kept = {(model.name, model.version, model.shadow): model for model in before.models}
            if names is None:
                selected = set(kept) if before.generation else set(self._specs)
            else:
                self._require_known(names)
                selected = {key for key in self._specs if key[0] in names}
            contents = {}
            for key, spec in self._specs.items():
                if key in selected:
                    digest, content = read_content(spec)
                    kept[key] = ReleasedModel(*key[:2], digest, key[2])
                    contents[digest] = content
            return self._release(kept, contents)

    def unload(self, name: str) -> Release:
        """Release all models but one."""
        with self._releases.changing():
            self._require_known([name])
            self.apply()
            before = self._releases.current()
            kept = {
                (model.name, model.version, model.shadow): model
                for model in before.models
                if model.name != name
            }
            return self._release(kept, {})

    def _release(
        self, models: Mapping[Key, ReleasedModel], contents: Mapping[str, bytes]
    ) -> Release:
        ordered = tuple(models[key] for key in self._specs if key in models)
        draft = Release(self.generation, ordered)
        loaded = self._load(draft, contents)  # raises before anything is published
        release = self._releases.publish(ordered, contents)
        self._serve(release, loaded)
        return release

    def _swap(self, release: Release, contents: Mapping[str, bytes]) -> None:
        self._serve(release, self._load(release, contents))

    def _load(self, release: Release, contents: Mapping[str, bytes]) -> dict[Key, Loaded]:
        read: Callable[[str], bytes] = self._releases.content
        loaded: dict[Key, Loaded] = {}
        for model in release.models:
            key = (model.name, model.version, model.shadow)
            present = self._loaded.get(key)
            if present is not None and present.digest == model.digest:
                loaded[key] = present
                continue
            content = contents[model.digest] if model.digest in contents else read(model.digest)
            try:
                loaded[key] = self._model(model, content)
            except DataError as error:
                raise error.at(self._specs[key].path) from error
        _check_shadows(loaded)
        if self.definitions is not None:
            self._check_definitions(loaded, self.definitions)
        return loaded

    def _model(self, model: ReleasedModel, content: bytes) -> Loaded:
        ranker = ranker_of_bytes(content)
        if model.shadow and ranker.reads_texts:
            raise DataError("ranks texts and cannot be a shadow", hint="Leave --shadow out.")
        if not ranker.reads_features:
            return ServedTextModel(model.name, model.version, content, ranker)
        return ServedModel(
            model.name, model.version, content, self._settings.absent,
            self._settings.most_documents, ranker,
        )  # fmt: skip

    def _check_definitions(
        self, loaded: Mapping[Key, Loaded], definitions: FeatureDefinitions
    ) -> None:
        """Raise a DataError unless the model of searches has the features that are computed."""
        assert self._settings.search is not None
        name = self._settings.search.model or self.default_name
        path = self._settings.search.definitions
        for key, model in loaded.items():
            if key[0] != name:
                continue
            if not model.reads_features:
                raise DataError(f"{name} ranks texts", path=path, hint="Name another model.")
            if model.reads_texts and not self._settings.search.text_fields:
                raise DataError(
                    f"{name} reads texts of documents, and the search names no field with them",
                    path=path, hint='Add text_fields = ["title", "body"] to its settings.',
                )  # fmt: skip
            require_same_definitions(model.definitions_hash, definitions.hash, name, path)
            undefined = set(model.feature_names) - set(definitions.names)
            if undefined:
                raise DataError(
                    f"feature {min(undefined)!r} of {name} is not defined", path=path,
                    hint="Give the definitions that the ranker's data were logged by.",
                )  # fmt: skip

    def _serve(self, release: Release, loaded: Mapping[Key, Loaded]) -> None:
        served = [model for key, model in loaded.items() if not key[2]]
        newest = {model.name: model for model in sorted(served, key=lambda item: item.version)}
        shadows = {
            key[0]: model for key, model in loaded.items() if key[2] and model.reads_features
        }
        # Each is replaced in one assignment: a request sees the old models or the new ones.
        self._loaded, self._newest, self._shadows = loaded, newest, shadows
        self.generation = release.generation

    def _require_known(self, names: Collection[str]) -> None:
        for name in names:
            if name not in {key[0] for key in self._specs if not key[2]}:
                raise Refusal(404, f"there is no model {name!r} in the repository")


def _check_shadows(loaded: Mapping[Key, Loaded]) -> None:
    models = {key: model for key, model in loaded.items() if model.reads_features}
    for (name, _, is_shadow), shadow in models.items():
        if not is_shadow:
            continue
        for key, model in loaded.items():
            if key[0] != name or key[2]:
                continue
            if not model.reads_features or model.reads_texts:
                raise DataError(f"{name} ranks texts and has no shadow", hint="Leave it out.")
            require_same_definitions(
                model.definitions_hash, shadow.definitions_hash, name, "its shadow"
            )
            if set(model.feature_names) != set(shadow.feature_names):
                raise DataError(
                    f"the shadow of {name} has other features than the model",
                    hint="Train both on the same features.",
                )
