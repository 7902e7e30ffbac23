"""Data sets: what is recorded is what is there, parts are disjoint, known ratios are true."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from lrqr import plugins
from lrqr.cli import cli
from lrqr.errors import DataError, UsageError
from lrqr.study import datasets
from lrqr.study.datasets import Rows, communities, corrupted_cifar, mmlu, rxrx1, synthetic, theory

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = ("communities", "corrupted-cifar", "gas-turbine", "mmlu", "poverty-map", "synthetic", "theory")
CASES = [(name, shift) for name in SHIPPED for shift in plugins.load("study.datasets", name).SHIFTS]


def keys(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows.features]


@pytest.mark.parametrize("name", plugins.names("study.datasets"))
def test_files_are_as_recorded(name: str) -> None:
    assert datasets.verify(name) == []


@pytest.mark.parametrize("name", plugins.names("study.datasets"))
def test_every_file_and_hash_is_in_the_readme(name: str) -> None:
    readme = (datasets.data_folder() / "README.md").read_text()
    for file in plugins.load("study.datasets", name).FILES:
        assert f"{file.sha256}  {file.name}" in readme
        assert (datasets.data_folder() / file.name).stat().st_size == file.size


def test_the_data_stay_small() -> None:
    assert sum(path.stat().st_size for path in datasets.data_folder().iterdir()) < 12 * 2**20


@pytest.mark.parametrize(("name", "shift"), CASES)
def test_a_split_is_finite_labeled_where_it_should_be_and_repeatable(name: str, shift: str) -> None:
    module = plugins.load("study.datasets", name)
    first, again, other = (module.split(shift, seed=seed) for seed in (3, 3, 4))
    for part in (first.source, first.target, first.test, first.train):
        if part is not None:
            assert part.features.dtype == np.float64
            assert np.isfinite(part.features).all()
            assert part.features.shape[1] == len(first.feature_names)
    assert first.target.outcome is None
    for part in (first.source, first.test):
        assert part.outcome is not None
        assert np.isfinite(part.outcome).all()
        if first.classes:
            assert part.prediction is not None
            assert part.prediction.shape == (len(part), len(first.classes))
            np.testing.assert_allclose(part.prediction.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(first.source.features, again.source.features)
    np.testing.assert_array_equal(first.test.outcome, again.test.outcome)
    assert first.source.features.shape != other.source.features.shape or np.any(
        first.source.features != other.source.features
    )


@pytest.mark.parametrize(
    ("name", "shift"), [case for case in CASES if case[0] not in ("synthetic", "theory")]
)
def test_parts_are_disjoint_rows_of_the_table(name: str, shift: str) -> None:
    """No row serves twice: the parts together hold no more copies of a row than the table does."""
    data = plugins.load("study.datasets", name).split(shift, seed=1)
    parts = [part for part in (data.train, data.source, data.target, data.test) if part is not None]
    drawn = Counter(key for part in parts for key in keys(part))
    if name not in ("mmlu", "corrupted-cifar"):
        frame = plugins.load("study.datasets", name).table()
        table = Rows(frame[list(data.feature_names)].to_numpy(np.float64))
    else:
        table = mmlu.table()[1] if name == "mmlu" else corrupted_cifar.table()[0]
    whole = Counter(keys(table))
    assert all(count <= whole[key] for key, count in drawn.items())
    assert name != "communities" or drawn == whole


@pytest.mark.parametrize("shift", communities.SHIFTS)
def test_communities_splits_as_in_section_5_2(shift: str) -> None:
    data = communities.split(shift, seed=0)
    column = data.feature_names.index(shift)
    assert data.train is not None
    assert len(data.feature_names) == 100
    assert len(data.train) == 997
    assert len(data.source) + len(data.target) + len(data.test) == 997
    assert abs(len(data.target) - len(data.test)) <= 1
    rest = np.concatenate([part.features[:, column] for part in (data.source, data.target, data.test)])
    assert data.source.features[:, column].max() <= np.median(rest)
    assert min(part.features[:, column].min() for part in (data.target, data.test)) > np.median(rest)


def test_communities_drops_what_is_missing_and_imputes_one_value() -> None:
    frame = communities.table()
    assert frame.shape == (1994, 101)
    assert not frame.isna().any().any()
    assert "LemasSwornFT" not in frame
    assert "OtherPerCap" in frame


def test_mmlu_goes_from_school_to_college_with_the_right_answers() -> None:
    frame, rows = mmlu.table()
    assert len(frame) == 2574
    assert rows.prediction is not None
    assert rows.outcome is not None
    accuracy = (rows.prediction.argmax(axis=1) == rows.outcome).mean()
    assert abs(accuracy - 0.421) < 0.001
    np.testing.assert_allclose(np.linalg.norm(rows.features, axis=1), 1.0, atol=2e-3)
    data = mmlu.split("school-to-college", seed=0, components=5)
    assert data.source.features.shape == (326, 5)
    source = set(frame.index[frame["level"] == "source_school"])
    where = {row.tobytes(): index for index, row in enumerate(rows.features)}
    full = mmlu.split("school-to-college", seed=0)
    assert {where[key] for key in keys(full.source)} <= source


def test_mmlu_components_do_not_see_the_test_rows() -> None:
    """The directions are those of the source and the unlabeled target alone."""
    full = mmlu.split("school-to-college", seed=2)
    few = mmlu.split("school-to-college", seed=2, components=3)
    pool = np.vstack([full.source.features, full.target.features])
    centered = pool - pool.mean(axis=0)
    values = np.linalg.eigvalsh(centered.T @ centered)[::-1][:3]
    scores = np.vstack([few.source.features, few.target.features])
    np.testing.assert_allclose((scores**2).sum(axis=0), values, rtol=1e-8)


def test_a_held_out_domain_is_the_target_and_only_the_target() -> None:
    rows, domain, _ = corrupted_cifar.table()
    where = {row.tobytes(): int(d) for row, d in zip(rows.features, domain, strict=True)}
    data = corrupted_cifar.split("jpeg", seed=0, source_rows=0, target_rows=0)
    jpeg = corrupted_cifar.DOMAINS.index("jpeg")
    assert jpeg not in {where[key] for key in keys(data.source)}
    assert {where[key] for key in keys(data.target) + keys(data.test)} == {jpeg}
    assert (len(data.source), len(data.target), len(data.test)) == (9000, 500, 500)
    assert rows.prediction is not None
    assert rows.outcome is not None
    right = rows.prediction.argmax(axis=1) == rows.outcome
    assert abs(right[domain == 0].mean() - 0.828) < 0.001
    assert abs(right[domain == 1].mean() - 0.398) < 0.001


@pytest.mark.parametrize("shift", corrupted_cifar.MIXTURES)
def test_a_mixture_has_the_stated_shares_and_their_ratio(shift: str) -> None:
    rows, domain, _ = corrupted_cifar.table()
    where = {row.tobytes(): int(d) for row, d in zip(rows.features, domain, strict=True)}
    data = corrupted_cifar.split(shift, seed=0)
    shares = {
        name: np.mean([where[key] > 0 for key in keys(part)])
        for name, part in (("source", data.source), ("target", data.target), ("test", data.test))
    }
    low, high = corrupted_cifar.MIXTURES[shift]
    assert shares == pytest.approx({"source": low, "target": high, "test": high})
    assert data.source.ratio is not None
    corrupted = np.array([where[key] > 0 for key in keys(data.source)])
    assert data.source.ratio.mean() == pytest.approx(1.0)
    assert (data.source.ratio * corrupted).mean() == pytest.approx(high)


@pytest.mark.parametrize("shift", synthetic.SHIFTS)
def test_the_synthetic_ratio_is_the_true_one(shift: str) -> None:
    """Change of measure: E_source[r g] = E_target[g] for several g, r normalized by its source mean."""
    data = synthetic.split(shift, seed=5, source_rows=200_000, test_rows=200_000, d=3)
    assert data.source.ratio is not None
    weight = data.source.ratio / data.source.ratio.mean()
    for g in (lambda x: x[:, 0], lambda x: x[:, 0] * x[:, 1], lambda x: np.cos(x.sum(axis=1))):
        inside, outside = g(data.source.features), g(data.test.features)
        error = np.sqrt(((weight * inside).var() + outside.var()) / 200_000)
        assert abs((weight * inside).mean() - outside.mean()) < 4 * error
    assert data.source.prediction is not None
    noise = data.source.outcome - data.source.prediction[:, 0]
    spread = 1 + data.source.prediction[:, 0] ** 2 / 3
    assert abs((noise / spread).std() - 1) < 0.01


def rxrx1_file(folder: Path, experiments: int = 14) -> Path:
    """A small file of the exported shape: 30 images an experiment, 5 classes."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(experiments), 30)
    outcome = rng.integers(5, size=len(group))
    features = rng.normal(size=(len(group), 8)) + 0.3 * rng.normal(size=(experiments, 8))[group]
    logits = rng.normal(size=(len(group), 5)) + 2.0 * np.eye(5)[outcome]
    path = folder / "rxrx1.npz"
    arrays = {"features": features.astype(np.float32), "logits": logits.astype(np.float32)}
    np.savez(path, **arrays, outcome=outcome, group=group + 33)
    return path


def test_rxrx1_holds_out_one_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rxrx1_file(tmp_path)
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    data = rxrx1.split("experiment-13", seed=0, target_rows=10)
    assert (len(data.source), len(data.target), len(data.test)) == (13 * 30, 10, 10)
    assert len(data.classes) == 5


def test_rxrx1_says_what_to_do_when_it_is_missing_or_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    with pytest.raises(DataError, match="export_rxrx1"):
        rxrx1.split("experiment-0", seed=0)
    np.savez(tmp_path / "bare.npz", features=np.zeros((3, 2)))
    with pytest.raises(DataError, match="lacks logits, outcome, group"):
        rxrx1.split("experiment-0", seed=0, path="bare.npz")
    rxrx1_file(tmp_path, experiments=3)
    with pytest.raises(DataError, match="holds 3 experiments"):
        rxrx1.split("experiment-5", seed=0)


def test_an_unknown_shift_is_corrected() -> None:
    with pytest.raises(UsageError, match="did you mean 'racepctblack'"):
        communities.split("racePctBlack", seed=0)


def test_a_missing_folder_and_a_changed_file_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "communities.csv").write_text("a,b\n1,2\n")
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    assert "sha256" in datasets.verify("communities")[0]
    assert "missing" in datasets.verify("mmlu")[0]
    monkeypatch.setenv("LRQR_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="LRQR_DATA"):
        datasets.data_folder()


def test_frames_carry_names_predictions_and_labels() -> None:
    frames = mmlu.split("school-to-college", seed=0, components=2).frames()
    assert list(frames["source"]) == ["e0", "e1", "p_A", "p_B", "p_C", "p_D", "outcome"]
    assert set(frames["source"]["outcome"]) == {"A", "B", "C", "D"}
    assert "outcome" not in frames["target"]
    assert list(synthetic.split("none", seed=0, d=1).frames()["test"]) == ["x1", "prediction", "outcome"]


def test_the_catalog_lists_every_file_of_the_package() -> None:
    assert [entry.name for entry in datasets.catalog().datasets] == list(plugins.names("study.datasets"))


@pytest.mark.parametrize(("name", "predictions"), [("communities", 1), ("mmlu", 4)])
def test_split_writes_disjoint_parts_with_predictions(name: str, predictions: int, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["datasets", "split", name, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    parts = {part: pd.read_csv(tmp_path / f"{part}.csv") for part in ("source", "target", "test")}
    assert "outcome" not in parts["target"]
    for frame in parts.values():
        assert sum(column == "prediction" or column.startswith("p_") for column in frame) == predictions
    rows = pd.concat([frame.drop(columns="outcome", errors="ignore") for frame in parts.values()])
    assert not rows.duplicated().any()
    again = CliRunner().invoke(cli, ["datasets", "split", name, "-o", str(tmp_path)])
    assert again.exit_code != 0
    assert "exists" in again.output


@pytest.mark.parametrize("shift", theory.SHIFTS)
def test_the_theory_has_its_ratio_and_its_own_unlabeled_rows(shift: str) -> None:
    """Weighted by the ratio, source rows have the target's mean; the numbers of rows are those asked for."""
    data = theory.split(shift, seed=5, d=3, labeled_rows=40_000, unlabeled_rows=30_000, test_rows=20_000)
    assert (len(data.source), len(data.unlabeled), len(data.target)) == (40_000, 30_000, 30_000)
    ratio = data.source.ratio
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    weighted = (ratio[:, None] * data.source.features).mean(axis=0)
    np.testing.assert_allclose(weighted, data.target.features.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(data.unlabeled.mean(axis=0), 0.0, atol=0.02)
    scores = np.abs(data.source.outcome)
    assert (shift == "inside") == (
        np.linalg.lstsq(np.c_[np.ones(40_000), data.source.features], ratio)[1][0] < 1e-6
    )
    assert (scores <= 1.645 * (1.0 + data.source.features[:, :2] @ [0.5, 0.4])).mean() == pytest.approx(
        0.9, abs=0.01
    )
