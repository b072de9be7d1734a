"""Real verdicts on whole result pages, where the data are."""

import numpy as np
import pytest

from podium.utility import utility_report
from studies.image_search_pages import read_pages
from tests.data.shared_files import SHARED

FOLDER = SHARED / "preferences" / "image-search"

pytestmark = pytest.mark.skipif(
    not FOLDER.exists(), reason="the image-search preferences are not in ../shared/data"
)


def test_the_pages_are_read_as_published() -> None:
    pages = read_pages(FOLDER, depth=10, grades=5)
    assert len(pages) == 102
    assert np.bincount(pages.choices + 1).tolist() == [28, 46, 28]
    shares = np.bincount(np.concatenate((pages.left, pages.right)).ravel(), minlength=5)
    assert np.all(shares > 300)  # grades by equal shares of the scores


def test_too_few_preferences_are_called_too_few() -> None:
    result = utility_report(
        read_pages(FOLDER, depth=10, grades=5), resamples=20, test_position=False
    )
    ours, *others = result.accuracies
    assert ours.low < 0.5 < ours.high
    assert all(other.ahead[1] < 0 < other.ahead[2] for other in others)
    assert any("56 strict preferences are too few" in note for note in result.notes())
